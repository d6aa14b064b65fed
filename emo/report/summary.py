"""``summary.csv``: every score of every run, one a line."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from emo.outputs import atomic_file
from emo.report.runs import Run

COLUMNS = (
    "teacher",
    "student",
    "task",
    "family",
    "method",
    "seed",
    "metric",
    "score",
    "main",
    "validation",
)


def summary_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Return every score in long form, sorted by run; a run's main metric comes first.

    ``main`` is True on exactly one row of a run; there ``validation`` has the score of the
    validation split.
    """
    rows = [
        (
            run.teacher,
            run.student,
            run.task,
            run.family,
            run.method,
            run.seed,
            metric,
            score,
            metric == run.main,
            run.validation if metric == run.main else None,
        )
        for run in runs
        for metric, score in sorted(
            run.metrics.items(), key=lambda item: (item[0] != run.main, item)
        )
    ]
    return pd.DataFrame(rows, columns=[*COLUMNS])


def write_summary(runs: Sequence[Run], out: Path) -> None:
    """Write the long table; scores keep every digit, so equal scores are equal bytes."""
    with atomic_file(out) as temporary:
        summary_table(runs).to_csv(temporary, index=False, lineterminator="\n")
