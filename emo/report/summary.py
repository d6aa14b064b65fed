"""``summary.csv``: every score of every run, one a line."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from emo.report.csv_table import write_csv
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
    """Write the long table."""
    write_csv(summary_table(runs), out)
