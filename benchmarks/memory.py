"""Peak memory of a step and of a teacher pass, each measured in a process of its own."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.child import run_child
from benchmarks.material import METHOD, Material
from benchmarks.peak import peak_bytes
from benchmarks.results import Result, device_name
from benchmarks.step import PLAIN
from benchmarks.teacher import CapturedPass, PlainPass
from benchmarks.timing import ratios, spread
from benchmarks.training import Training
from emo.distil_inputs import DistilInputs
from emo.teacher_pass import BATCH_TEXTS
from emo.texts import joined, load_texts

STUDENTS = ("bert-base", "minilm6")
STEP_LENGTH = 256
TEACHER_LENGTHS = (64, 128, 256)
STEPS = 2
"""The optimiser's state is there from the second step on."""
PAIRS = {"bert-base": 1, "minilm6": 3}
TEACHER_PAIRS = 2
MIB = 2**20


def measure_step_memory(material: Material, student: str) -> list[Result]:
    """Compare the peak of EMO steps with that of plain steps."""
    inputs = material.inputs(student, STEP_LENGTH)
    files = {name: str(path) for name, path in asdict(inputs).items() if path is not None}
    requests = [{"method": method.form, "inputs": files} for method in (PLAIN, METHOD)]
    return _compare(step_memory_name(student), requests, PAIRS[student], "x plain step")


def measure_teacher_memory(material: Material, length: int) -> list[Result]:
    """Compare the peak of a pass with capture with that of ``encode``."""
    teacher, texts = material.teacher_model(length), material.long_texts(length)
    requests = [
        {"teacher": str(teacher), "texts": str(texts), "capture": capture}
        for capture in (False, True)
    ]
    return _compare(teacher_memory_name(length), requests, TEACHER_PAIRS, "x encode")


def step_memory_name(student: str) -> str:
    """Name the memory of a student's step."""
    return f"step_memory.{student}.s{STEP_LENGTH}"


def teacher_memory_name(length: int) -> str:
    """Name the memory of a teacher's pass over texts of a length."""
    return f"teacher_memory.s{length}"


def peak_of(request: dict[str, Any]) -> int:
    """Do what a request asks for and return the most bytes that it held."""
    if "method" in request:
        files = {name: Path(path) for name, path in request["inputs"].items()}
        method = PLAIN if request["method"] == PLAIN.form else METHOD
        training = Training(method, DistilInputs(**files))
        return peak_bytes(lambda: _steps(training))
    make = CapturedPass if request["capture"] else PlainPass
    run = make(Path(request["teacher"]))
    texts = [joined(text) for text in load_texts(Path(request["texts"])).texts][:BATCH_TEXTS]
    run(texts[:1])  # weights are mapped files, resident once they have been read
    return peak_bytes(lambda: run(texts))


def _steps(training: Training) -> None:
    for number in range(STEPS):
        training.repeat(number)


def _compare(name: str, requests: list[dict[str, Any]], pairs: int, unit: str) -> list[Result]:
    peaks: list[list[float]] = [[], []]
    for _ in range(pairs):
        for request, measured in zip(requests, peaks, strict=True):
            measured.append(run_child("benchmarks.memory", request) / MIB)
    base, peak = peaks
    return [
        Result.of(name, spread(ratios(peak, base)), unit, device_name()),
        Result.of(f"{name}.peak", spread(peak), "MiB", device_name()),
    ]


if __name__ == "__main__":
    print(peak_of(json.loads(sys.argv[1])))
