"""``methods.csv``: what each method is, and what it took to train it."""

import json
import statistics
from collections.abc import Sequence
from typing import Any

import pandas as pd

from emo.config import Study
from emo.config_methods import MethodSettings
from emo.evidence.trace import TracedRun, training_job
from emo.provenance import settings_digest
from emo.report.costs import load_costs, seconds_of
from emo.report.runs import pairs_of

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


def methods_table(study: Study, traced: Sequence[TracedRun]) -> pd.DataFrame:
    """Return what each method is for each teacher and student, one a line.

    ``training_seconds`` are those of one seed on all text sets, on average over the seeds; empty
    where the time of a training is not known.

    Raises:
        DataError: What a training cost is missing or damaged.
    """
    rows = []
    for pair in pairs_of(each.run for each in traced):
        for name in study.study.methods:
            method = study.methods[name]
            rows.append(
                {
                    "teacher": pair[0],
                    "student": pair[1],
                    "method": name,
                    "form": method.form,
                    "settings": settings_words(method),
                    "digest": method_digest(method),
                    **{key: getattr(study.training, key) for key in BUDGET},
                    "training_seconds": _training_seconds(study, traced, pair, name),
                }
            )
    return pd.DataFrame(rows)


def _training_seconds(
    study: Study, traced: Sequence[TracedRun], pair: tuple[str, str], method: str
) -> float | None:
    mine = [
        each.run
        for each in traced
        if (each.run.teacher, each.run.student) == pair and each.run.method == method
    ]
    # Tasks on one text set share a training.
    jobs = dict.fromkeys(job for run in mine if (job := training_job(study, run)) is not None)
    costs = load_costs([*jobs])
    seconds = seconds_of(costs)
    if len(seconds) < len(costs):
        return None
    return statistics.fmean(
        sum(cost.seconds or 0.0 for cost in costs if cost.job.seed == seed)
        for seed in {cost.job.seed for cost in costs}
    )
