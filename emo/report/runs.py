"""The files that a report is made of: what each run scored, and on which items."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emo.config_methods import Family
from emo.errors import DataError
from emo.outputs import read_json

TEACHER = "teacher"
UNDISTILLED = "undistilled"
KEYS = ("teacher", "student", "task", "family", "method", "seed", "scores", "predictions")


@dataclass(frozen=True, slots=True)
class Run:
    """The scores of one model on one task.

    Attributes:
        teacher: Name of the teacher.
        student: Name of the student.
        task: Name of the task.
        family: Family of the task.
        method: A method of the study, ``teacher`` or ``undistilled``.
        seed: Seed of the training; 0 for the two that are not trained.
        metrics: Metric names and values.
        main: The metric that averages and comparisons use.
        validation: The main metric on the validation split.
        parameters: Number of weights of the model that was judged.
        items: Digest of the test texts.
        predictions: File of the predictions.
    """

    teacher: str
    student: str
    task: str
    family: Family
    method: str
    seed: int
    metrics: Mapping[str, float]
    main: str
    validation: float
    parameters: int
    items: str
    predictions: Path

    @property
    def score(self) -> float:
        """The main score."""
        return self.metrics[self.main]


def load_runs(manifest: Sequence[Mapping[str, Any]]) -> list[Run]:
    """Read the scores that a manifest lists.

    Args:
        manifest: For each run ``teacher``, ``student``, ``task``, ``family``, ``method``,
            ``seed`` and the paths ``scores`` and ``predictions``. The teacher's and the
            undistilled student's have the methods ``teacher`` and ``undistilled``, and seed 0.

    Returns:
        The runs, sorted by teacher, student, task, method and seed.

    Raises:
        DataError: The manifest is empty, lacks a key or lists a run twice, or a score file is
            damaged or belongs to another task.
    """
    runs = [_load_run(entry) for entry in manifest]
    if not runs:
        raise DataError("the manifest of the report lists no run")
    runs.sort(key=_identity)
    for previous, run in zip(runs, runs[1:], strict=False):
        if _identity(previous) == _identity(run):
            raise DataError(f"the manifest lists the run {describe(run)} twice")
    return runs


def pairs_of(runs: Iterable[Run]) -> list[tuple[str, str]]:
    """Return the (teacher, student) pairs that occur, sorted."""
    return sorted({(run.teacher, run.student) for run in runs})


def describe(run: Run) -> str:
    """Name a run in an error."""
    return f"{run.teacher}/{run.student}/{run.task}/{run.method}/seed{run.seed}"


def _identity(run: Run) -> tuple[str, str, str, str, int]:
    return run.teacher, run.student, run.task, run.method, run.seed


def _load_run(entry: Mapping[str, Any]) -> Run:
    missing = [key for key in KEYS if key not in entry]
    if missing:
        raise DataError(f"the manifest entry {dict(entry)} lacks {', '.join(missing)}")
    path = Path(entry["scores"])
    record = read_json(path)
    try:
        run = Run(
            teacher=entry["teacher"],
            student=entry["student"],
            task=entry["task"],
            family=entry["family"],
            method=entry["method"],
            seed=int(entry["seed"]),
            metrics={name: float(value) for name, value in record["metrics"].items()},
            main=record["main"],
            validation=float(record["validation"]),
            parameters=int(record["model"]["parameters"]),
            items=f"{int(record['test_sha256'], 16):064x}",
            predictions=Path(entry["predictions"]),
        )
        found = (record["task"], record["family"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} is no score file ({error!r}); evaluate again") from error
    if found != (run.task, run.family):
        raise DataError(
            f"{path} holds the {found[1]} task {found[0]}, but the manifest lists it as the "
            f"{run.family} task {run.task}"
        )
    if run.main not in run.metrics or not all(map(math.isfinite, run.metrics.values())):
        raise DataError(f"{path}: the main metric {run.main} is missing, or a metric not finite")
    return run
