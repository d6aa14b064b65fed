"""The labelled rows that models learn a task from, checked before anything is spent.

A teacher is tuned on them, and a student is trained on them: both number the classes alike.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from emo.config_methods import Family
from emo.config_tasks import COLUMNS
from emo.errors import DataError
from emo.losses.task import HIGHEST_SCORE
from emo.outputs import read_json
from emo.tables import ROW
from emo.tasks import TEXT_COLUMNS, load_split, without_leakage
from emo.training_texts import tested_texts

logger = logging.getLogger(__name__)

TunedSplit = Literal["train", "validation"]
TUNED_SPLITS: tuple[TunedSplit, ...] = ("train", "validation")


@dataclass(frozen=True, slots=True)
class SplitRows:
    """Rows of one split.

    Attributes:
        texts: Texts of each row, one or two.
        targets: Class numbers (int64) or scores (float64), ``(N,)``.
        left_out: Rows left out because a task of the study tests on a text of theirs.
    """

    texts: list[tuple[str, ...]]
    targets: NDArray[np.int64] | NDArray[np.float64]
    left_out: int


@dataclass(frozen=True, slots=True)
class SupervisedRows:
    """What a task gives to learn from.

    Attributes:
        family: Its family.
        labels: Names of the classes, in the order of their numbers; empty for sts.
        train: Rows to train on.
        validation: Rows that choices are made on.
    """

    family: Family
    labels: list[str]
    train: SplitRows
    validation: SplitRows


def read_supervised_rows(task: Path, unseen: Sequence[Path]) -> SupervisedRows:
    """Read the train and validation rows of a prepared task.

    Args:
        task: The prepared task.
        unseen: Every prepared task whose test texts must stay unseen.

    Raises:
        DataError: A split or a label is missing, is left without rows, or has none to tell apart;
            a class of the validation split does not occur in training; a score is out of range,
            or all are within 0 and 1.
    """
    family: Family = read_json(task / "report.json")["family"]
    tested = tested_texts(unseen)
    tables = {split: _table(task, family, split, tested) for split in TUNED_SPLITS}
    label = COLUMNS[family][-1]
    labels: list[str] = []
    if family != "sts":
        labels = sorted({str(value) for value in tables["train"][0][label]})
        _require_known(task, tables["validation"][0], labels)
    elif (where := _outside(tables)) is not None:
        raise DataError(
            f"{task}: row {where[1]} of the {where[0]} split has the score {where[2]}, and scores "
            f"are 0 to {HIGHEST_SCORE:g} where they are learned; rescale the column"
        )
    elif (highest := tables["train"][0][label].max()) <= 1:
        raise DataError(
            f"{task}: no score of the train split is above {highest:g}, as if the scale were 0 to "
            f"1, and scores are 0 to {HIGHEST_SCORE:g} where they are learned; rescale the column"
        )
    rows = {
        split: SplitRows(
            texts=[tuple(row) for row in table[list(TEXT_COLUMNS[family])].to_numpy().tolist()],
            targets=_targets(table[label].tolist(), labels),
            left_out=left_out,
        )
        for split, (table, left_out) in tables.items()
    }
    return SupervisedRows(family, labels, rows["train"], rows["validation"])


def _table(
    task: Path, family: Family, split: TunedSplit, tested: set[str]
) -> tuple[pd.DataFrame, int]:
    """Return the usable rows of a split, and how many were left out."""
    whole = load_split(task, split)
    columns = COLUMNS[family]
    missing = [column for column in columns if column not in whole.columns]
    if missing:
        raise DataError(f"{task}: the {split} split has no column {', '.join(missing)}")
    empty = whole.loc[whole[columns[-1]].isna(), ROW]
    if len(empty):
        raise DataError(
            f"{task}: row {empty.iloc[0]} of the {split} split has no {columns[-1]}, and a task is "
            "learned from labelled rows alone; prepare the task again"
        )
    table = without_leakage(whole, TEXT_COLUMNS[family], tested)
    left_out = len(whole) - len(table)
    if table.empty:
        raise DataError(f"{task}: no {split} row is left of {len(whole)} to learn from")
    labels = table[columns[-1]].unique().tolist()
    if len(labels) < 2:
        raise DataError(
            f"{task}: every {split} row has the {columns[-1]} {labels[0]!r}; nothing can be "
            "learned without two different ones"
        )
    if left_out:
        logger.info("%s: %d %s rows left out, their texts are tested on", task, left_out, split)
    return table, left_out


def _require_known(task: Path, validation: pd.DataFrame, labels: Sequence[str]) -> None:
    unknown = sorted({str(value) for value in validation["label"]} - set(labels))
    if unknown:
        raise DataError(
            f"{task}: the validation split has the labels {', '.join(unknown)}, which no train row "
            "has, so that they cannot be learned; take other `splits`, or drop these rows"
        )


def _outside(
    tables: dict[TunedSplit, tuple[pd.DataFrame, int]],
) -> tuple[TunedSplit, int, float] | None:
    """Return split, row and score of the first score that is out of range."""
    for split, (table, _) in tables.items():
        outside = table[~table["score"].between(0, HIGHEST_SCORE)]
        if len(outside):
            first = outside.iloc[0]
            return split, int(first[ROW]), float(first["score"])
    return None


def _targets(
    values: Sequence[Any], labels: Sequence[str]
) -> NDArray[np.int64] | NDArray[np.float64]:
    if not labels:
        return np.array(values, dtype=np.float64)
    return np.array([labels.index(str(value)) for value in values], dtype=np.int64)
