"""The tracked run that each score comes from."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emo.config import Study
from emo.errors import DataError
from emo.evidence.trainings import budget, training_job
from emo.jobs import Job
from emo.outputs import read_json
from emo.report.runs import Run, describe, pairs_of
from emo.run_tags import RunKey
from emo.tracking import TrackedRun, current_runs

SAME_SCORE = 1e-9


@dataclass(frozen=True, slots=True)
class TracedRun:
    """A run of the study and what MLflow has of it."""

    run: Run
    tracked: TrackedRun


def trace_runs(study: Study, runs: Sequence[Run]) -> list[TracedRun]:
    """Find the tracked run of each run, and see that it is the one whose files are read.

    It must have the same score and, of a training, the same identity; the training must have had
    the settings that the study has now, with the rate that its search chose.

    Raises:
        ConfigError: The tracking store cannot be reached.
        DataError: A run is not tracked, or what is tracked or trained is another.
    """
    known: dict[RunKey, TrackedRun] = {}
    for pair in pairs_of(runs):
        known |= current_runs(*pair)
    return [TracedRun(run, _traced(study, run, known)) for run in runs]


def _traced(study: Study, run: Run, known: Mapping[RunKey, TrackedRun]) -> TrackedRun:
    key = RunKey(run.teacher, run.student, run.task, run.method, run.seed)
    again = f"remove {run.predictions.parent}/scores.json and run the study again"
    tracked = known.get(key)
    if tracked is None:
        raise DataError(
            f"{describe(run)} has no run in MLflow that its numbers could be traced to; set "
            f"MLFLOW_TRACKING_URI to where it was tracked, or {again}"
        )
    found = tracked.scores.get(run.main, math.nan)
    if not math.isclose(found, run.score, rel_tol=SAME_SCORE):
        raise DataError(
            f"{describe(run)} has the {run.main} {run.score} in its file and {found} in MLflow run "
            f"{tracked.run_id}; {again}"
        )
    job = training_job(study, run)
    if job is not None and _identity(study, job) != tracked.identity:
        raise DataError(
            f"{job.result} is not the training that MLflow run {tracked.run_id} shows; remove it "
            "and run the study again"
        )
    return tracked


def _identity(study: Study, job: Job) -> str:
    """Return the identity of a training that had the settings of the study."""
    path = Path(job.result)
    record: Mapping[str, Any] = read_json(path)
    try:
        settings, identity = record["settings"], str(record["identity"])
        trained = (settings["method"], settings["training"])
    except (KeyError, TypeError) as error:
        raise DataError(f"{path}: no record of a training ({error!r}); train again") from error
    wanted = (study.methods[job.method], budget(study, job))
    if trained != tuple(each.model_dump(mode="json") for each in wanted):
        raise DataError(
            f"{path}: {job.method} was trained with other settings than the study has; run the "
            "study again"
        )
    return identity
