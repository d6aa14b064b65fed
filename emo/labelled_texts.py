"""Labelled text sets: the train rows of one task, each with its class number or score.

A row is one text to a model, pairs too. Repeated texts stay, each with the label of its row: stores
and maps know them by their text alone.
"""

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray

from emo.errors import ConfigError, DataError
from emo.outputs import write_json
from emo.supervised_rows import SplitRows, read_supervised_rows
from emo.texts import Text, TextSet, save_texts, text_key
from emo.training_texts import TextsReport

logger = logging.getLogger(__name__)

TARGET, LABEL = "target", "label"


@dataclass(frozen=True, slots=True)
class Targets:
    """What is right for each text of a labelled set.

    Attributes:
        values: Class numbers (int64) or scores from 0 to 5 (float32), ``(N,)``.
        labels: Names of the classes, in the order of their numbers; empty for scores.
    """

    values: NDArray[np.int64] | NDArray[np.float32]
    labels: list[str]


def gather_labelled_texts(tasks: Sequence[Path], unseen: Sequence[Path], out: Path) -> TextsReport:
    """Make a text set of the train rows of a task, without rows that have a test text.

    Args:
        tasks: The prepared task, the only one.
        unseen: Every prepared task whose test texts must stay unseen.
        out: Parquet file with ``text`` (and ``second`` of pairs), ``key``, ``target`` and, of
            classes, ``label``; the report is written beside it as JSON.

    Raises:
        ConfigError: There is not one task.
        DataError: The rows cannot be learned from.
    """
    if len(tasks) != 1:
        raise ConfigError("a labelled text set keeps the labels of one task; name one")
    (task,) = tasks
    rows = read_supervised_rows(task, unseen)
    texts = [_text(row) for row in rows.train.texts]
    keys = [text_key(text) for text in texts]
    save_texts(TextSet(texts, keys), out, _columns(rows.train, rows.labels))
    report = TextsReport(
        given={task.name: len(texts) + rows.train.left_out},
        duplicates=0,
        leaked=rows.train.left_out,
        over_limit=0,
        texts=len(texts),
    )
    write_json(out.with_suffix(".json"), asdict(report))
    logger.info("%s: %d labelled texts, %d left out", out, report.texts, report.leaked)
    return report


def load_targets(path: Path) -> Targets | None:
    """Load what is right for each text of a set; None if the set has no labels.

    Raises:
        DataError: A class has no text.
    """
    names = [name for name in pq.read_schema(path).names if name in (TARGET, LABEL)]
    if TARGET not in names:
        return None
    table = pd.read_parquet(path, columns=names)
    if LABEL not in names:
        return Targets(table[TARGET].to_numpy(np.float32), [])
    named = dict(zip(table[TARGET], table[LABEL], strict=True))
    if sorted(named) != list(range(len(named))):
        raise DataError(f"{path}: a class has no text; build the text set again")
    return Targets(table[TARGET].to_numpy(np.int64), [named[number] for number in sorted(named)])


def _text(row: tuple[str, ...]) -> Text:
    return (row[0], row[1]) if len(row) > 1 else row[0]


def _columns(rows: SplitRows, labels: Sequence[str]) -> dict[str, NDArray[np.generic]]:
    columns: dict[str, NDArray[np.generic]] = {TARGET: rows.targets}
    if labels:
        columns[LABEL] = np.array(labels, dtype=object)[rows.targets]
    return columns
