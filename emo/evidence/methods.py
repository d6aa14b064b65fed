"""``methods.csv``: what each method is, what its search chose, and what it took to train it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from emo.config import Study
from emo.config_methods import MethodSettings
from emo.evidence.trainings import budget, searched, training_job
from emo.jobs import Job
from emo.outputs import read_json
from emo.provenance import settings_digest
from emo.report.costs import load_costs, seconds_of
from emo.report.runs import Run
from emo.search import read_choice

TRAININGS = ("distil", "trial")
BUDGET = ("steps", "batch_size", "learning_rate", "head_learning_rate", "warmup", "weight_decay")


def changed_settings(method: MethodSettings) -> dict[str, Any]:
    """Return the settings in which a method differs from its form's defaults.

    >>> from emo.config_methods import EmoSettings
    >>> changed_settings(EmoSettings(form="emo", transport=0.0, layers=2))
    {'transport': 0.0, 'layers': 2}
    """
    default = type(method).model_validate({"form": method.form}).model_dump(mode="json")
    settings = method.model_dump(mode="json")
    return {name: value for name, value in settings.items() if value != default[name]}


def settings_words(method: MethodSettings) -> str:
    """Return these settings as words, ``-`` for a form as it is.

    >>> from emo.config_methods import EmoSettings
    >>> settings_words(EmoSettings(form="emo", transport=0.0, layers=2))
    'transport: 0.0, layers: 2'
    """
    changed = changed_settings(method)
    return ", ".join(f"{name}: {json.dumps(value)}" for name, value in changed.items()) or "-"


def method_digest(method: MethodSettings) -> str:
    """Return the digest of all settings of a method."""
    return settings_digest(method.model_dump(mode="json"))


def methods_table(study: Study, runs: Sequence[Run]) -> pd.DataFrame:
    """Return each method on each text set of each teacher and student, one a line.

    ``training_seconds`` is the mean over the seeds, ``search_seconds`` the sum over the trials and
    their evaluations; either is empty where the time of a job is not known. ``search_validation``
    has the validation score of each rate that was tried; without a search it is empty.

    Raises:
        DataError: What a search chose or a job cost is missing or damaged.
    """
    trainings: dict[tuple[str, ...], list[Job]] = {}
    for run in runs:
        job = training_job(study, run)
        if job is not None:
            seeds = trainings.setdefault((job.teacher, job.student, job.method, job.texts), [])
            seeds += [job] if job not in seeds else []
    rows = [_row(study, jobs) for jobs in trainings.values()]
    order = study.study.methods
    rows.sort(key=lambda row: (row["teacher"], row["student"], order.index(row["method"])))
    return pd.DataFrame(rows)


def _row(study: Study, trainings: Sequence[Job]) -> Mapping[str, Any]:
    job = trainings[0]
    method, search = study.methods[job.method], searched(study, job)
    training, seconds = budget(study, job), _seconds(trainings)
    return {
        "teacher": job.teacher,
        "student": job.student,
        "method": job.method,
        "texts": job.texts,
        "form": method.form,
        "settings": settings_words(method),
        "digest": method_digest(method),
        **{key: getattr(training, key) for key in BUDGET},
        "training_seconds": None if seconds is None else seconds / len(trainings),
        "search_seconds": _seconds(search),
        "search_validation": _validation(Path(search[-1].result)) if search else "",
    }


def _seconds(jobs: Sequence[Job]) -> float | None:
    """Return the seconds of jobs together, None where those of one are not known.

    Snakemake measures the last attempt: of an interrupted training that is a part.
    """
    trainings = (read_json(Path(job.result)) for job in jobs if job.rule in TRAININGS)
    if any(training["resumed_from_step"] for training in trainings):
        return None
    known = seconds_of(load_costs(jobs))
    return sum(known) if jobs and len(known) == len(jobs) else None


def _validation(chosen: Path) -> str:
    scores = read_choice(chosen).validation
    return ", ".join(f"{rate}: {scores[rate]}" for rate in sorted(scores, key=float))
