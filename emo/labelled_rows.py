"""Read the labelled rows of a task: our column names, checked texts, typed labels."""

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from emo.config_tasks import COLUMNS, TaskData
from emo.errors import DataError
from emo.leakage import usable
from emo.tables import ROW, read_table, require_columns

logger = logging.getLogger(__name__)

SHOWN_ROWS = 20
"""Row numbers listed in a message; the task's report has them all."""

UNUSABLE = "without text (nothing but spaces, control or format characters)"


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """The rows of one file that can be used.

    Attributes:
        table: Columns ``row`` and those of the task's family; the label is a string for
            classification, 0 or 1 for pairs, and a float ``score`` for sts.
        read: Number of rows in the file.
        unusable: Numbers of the rows left out because a text of theirs says nothing.
    """

    table: pd.DataFrame
    read: int
    unusable: list[int]


def read_rows(path: Path, settings: TaskData) -> LabelledRows:
    """Read a file of labelled rows, leaving out those without text.

    Raises:
        DataError: The file cannot be read, lacks a column, or a label or score is not one.
    """
    raw = read_table(path, settings.table)
    ours = COLUMNS[settings.family]
    theirs = [settings.columns.get(column, column) for column in ours]
    require_columns(raw, theirs, path)
    # Built column by column: two of ours may come from one of theirs.
    table = pd.DataFrame({ROW: raw[ROW]} | {o: raw[t] for o, t in zip(ours, theirs, strict=True)})
    has_text = table[list(ours[:-1])].map(usable).all(axis="columns")
    unusable = [int(row) for row in table.loc[~has_text, ROW]]
    table = table[has_text].reset_index(drop=True)
    return LabelledRows(_with_labels(table, path, settings), len(raw), unusable)


def log_unusable(path: Path, rows: Sequence[int]) -> None:
    """Warn of rows that are left out, with their numbers."""
    if rows:
        logger.warning("%s: dropped %d rows %s: rows %s", path, len(rows), UNUSABLE, listed(rows))


def listed(rows: Sequence[int]) -> str:
    """Return row numbers for a message, the first ones when there are many.

    >>> listed([3, 5])
    '3, 5'
    """
    shown = ", ".join(str(row) for row in rows[:SHOWN_ROWS])
    return shown if len(rows) <= SHOWN_ROWS else f"{shown} and {len(rows) - SHOWN_ROWS} more"


def _with_labels(table: pd.DataFrame, path: Path, settings: TaskData) -> pd.DataFrame:
    column = COLUMNS[settings.family][-1]
    threshold = settings.label_from_score
    match settings.family:
        case "classification":
            values = _convert(table, path, column, str.strip, "a label")
            dtype = "str"
        case "pairs" if threshold is None:
            values = _convert(table, path, column, {"0": 0, "1": 1}.get, "0 or 1")
            dtype = "int64"
        case "pairs":
            scores = _convert(table, path, column, _number, "a number")
            values = [int(score >= threshold) for score in scores]
            dtype = "int64"
        case _:
            values = _convert(table, path, column, _number, "a number")
            dtype = "float64"
    return table.assign(**{column: pd.Series(values, index=table.index, dtype=dtype)})


def _convert(
    table: pd.DataFrame, path: Path, column: str, convert: Callable[[str], object], wanted: str
) -> list[Any]:
    converted: list[Any] = []
    for row, value in zip(table[ROW], table[column], strict=True):
        result = convert(value)
        if result is None or result == "":
            raise DataError(f"row {row} of {path}: `{column}` is {value!r}, expected {wanted}")
        converted.append(result)
    return converted


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
