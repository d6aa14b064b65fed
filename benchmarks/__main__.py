"""`python -m benchmarks`: measure, show a table, write results/bench.json."""

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import transformers

from benchmarks import alignment, loss_time, memory, step, teacher
from benchmarks.material import STUDY_STUDENT, Material
from benchmarks.results import Result, line, write
from benchmarks.training import BATCH_SIZE

TEACHER = Path("resources/models/me5-small")
STUDENT = Path("resources/models") / STUDY_STUDENT
SENTENCES = Path("resources/texts/sentences.parquet")
OUT = Path("results/bench.json")

Measure = Callable[[Material], list[Result]]

BENCHMARKS: dict[str, Measure] = {
    alignment.NAMES[0]: alignment.measure_alignment,
    teacher.NAME: teacher.measure_teacher_pass,
    **{
        step.step_name(student, length): partial(step.measure_step, student=student, length=length)
        for student, length in step.CASES
    },
    "loss_time": loss_time.measure_loss_time,
    **{
        memory.step_memory_name(student): partial(memory.measure_step_memory, student=student)
        for student in memory.PAIRS
    },
    **{
        memory.teacher_memory_name(length): partial(memory.measure_teacher_memory, length=length)
        for length in memory.TEACHER_LENGTHS
    },
}
"""By the name of the first result, or what the names of all begin with."""


def chosen(only: str) -> dict[str, Measure]:
    """Return the benchmarks that a name stands for: one, a group, or all for an empty name.

    Raises:
        SystemExit: It stands for none.
    """
    found = {
        name: measure
        for name, measure in BENCHMARKS.items()
        if not only or f"{name}.".startswith(f"{only}.") or only.startswith(f"{name}.")
    }
    if not found:
        raise SystemExit(f"no benchmark {only!r}; choose from {', '.join(BENCHMARKS)}")
    return found


def main() -> None:
    """Measure what the command line asks for, line by line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", help="name of a benchmark, or how its names begin")
    only = parser.parse_args().only
    transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    print("median (least .. greatest) of the pairs of this run")
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        texts = BATCH_SIZE * (1 + max(step.CASES.values()))
        material = Material(TEACHER, STUDENT, SENTENCES, Path(folder), texts)
        for measure in chosen(only).values():
            for result in measure(material):
                results.append(result)
                print(line(result), flush=True)
    write(results, OUT)


if __name__ == "__main__":
    main()
