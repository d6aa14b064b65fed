"""What a benchmark says, what is asked of it, and where it is written."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from benchmarks.timing import Spread
from emo.outputs import read_json, write_json


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table.

    Attributes:
        name: Of the benchmark.
        ratio: Median of the pairs of one run; a rate where the unit says so.
        low: Least of the pairs.
        high: Greatest of the pairs.
        unit: What the ratio is a ratio to.
        device: What it was measured on.
    """

    name: str
    ratio: float
    low: float
    high: float
    unit: str
    device: str

    @classmethod
    def of(cls, name: str, values: Spread, unit: str, device: str) -> "Result":
        """Name what a spread is of."""
        return cls(name, values.ratio, values.low, values.high, unit, device)


AT_MOST = {
    "step.bert-base.s64": 1.10,
    "step.minilm6.s64": 1.25,
    "step.minilm-l3.s64": 1.25,
    "teacher_pass": 1.10,
    "step_memory.bert-base.s256": 1.25,
    "step_memory.minilm6.s256": 1.25,
}
AT_LEAST = {"alignment": 30.0, "alignment.texts_per_second": 4000.0}
"""Targets on two CPU cores; the alignment's are for one."""


def line(result: Result) -> str:
    """Say a result in one line of the table.

    >>> line(Result("teacher_pass", 1.05, 1.0, 1.2, "x encode", "cpu"))
    'teacher_pass                       1.050  (1.000 .. 1.200)  x encode, cpu; target <= 1.1: met'
    """
    value = f"{result.name:<30}{result.ratio:>10,.3f}  ({result.low:,.3f} .. {result.high:,.3f})"
    return f"{value}  {result.unit}, {result.device}{_verdict(result)}"


def write(results: Iterable[Result], path: Path) -> None:
    """Write results by name; those of an earlier run that were not measured again stay."""
    known = read_json(path) if path.is_file() else {}
    fresh = {result.name: asdict(result) for result in results}
    for record in fresh.values():
        del record["name"]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, known | fresh)


def device_name(threads: int | None = None) -> str:
    """Name the GPU, or the CPU with the threads in use."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"cpu, threads: {threads or torch.get_num_threads()}"


def _verdict(result: Result) -> str:
    if result.name in AT_MOST:
        target, met, sign = AT_MOST[result.name], result.ratio <= AT_MOST[result.name], "<="
    elif result.name in AT_LEAST:
        target, met, sign = AT_LEAST[result.name], result.ratio >= AT_LEAST[result.name], ">="
    else:
        return ""
    return f"; target {sign} {target:g}: {'met' if met else 'NOT MET'}"
