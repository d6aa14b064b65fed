"""Prepare a labelled task: its splits without leakage, and the texts to train on.

The test split decides. Rows of the other splits that share a sentence with it are dropped, since
both the training texts and the choices made on validation rows must not have seen it.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import pandas as pd

from emo.config_methods import Family
from emo.config_tasks import COLUMNS, FileSplits, HashSplits, TaskData
from emo.errors import ConfigError, DataError
from emo.labelled_rows import UNUSABLE, LabelledRows, listed, log_unusable, read_rows
from emo.leakage import normalised, normalised_set
from emo.outputs import atomic_directory, write_json
from emo.splits import DistinctRows, distinct_rows, hash_splits, share_of, take_rows
from emo.tables import single_file

logger = logging.getLogger(__name__)

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")

TEXT_COLUMNS: Mapping[Family, tuple[str, ...]] = {
    family: columns[:-1] for family, columns in COLUMNS.items()
}

VARIED_SPLITS: Mapping[Family, tuple[Split, ...]] = {
    "classification": ("train", "test"),
    "pairs": ("validation", "test"),
    "sts": ("validation", "test"),
}
"""Splits that need two different labels: a classifier, a threshold or a score rests on them."""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What became of the rows of a task.

    Attributes:
        task: Name of the task.
        family: Its family.
        rows_read: Rows in each file, by split, or under ``all`` where one file is split.
        unusable: Numbers of the rows without text, which were dropped, under the same keys.
        duplicates: Rows dropped because texts and label repeat an earlier row.
        two_labels: Rows dropped because their texts occur with different labels.
        not_taken: Train rows left out by ``train_fraction``.
        leaked: Rows dropped because a text of theirs is a test text, for train and validation.
        leaked_sentences: Different sentences left out of the training texts for that reason.
        sizes: Rows of each split.
        texts: Number of training texts.
        labels: Labels of the train split, sorted; empty for sts.
    """

    task: str
    family: Family
    rows_read: dict[str, int]
    unusable: dict[str, list[int]]
    duplicates: int
    two_labels: int
    not_taken: int
    leaked: dict[str, int]
    leaked_sentences: int
    sizes: dict[str, int]
    texts: int
    labels: list[str]


@dataclass(frozen=True, slots=True)
class _Parts:
    """The splits before leakage is looked for, and what was dropped on the way."""

    splits: Mapping[str, pd.DataFrame]
    read: Mapping[str, LabelledRows]
    duplicates: int = 0
    two_labels: int = 0
    not_taken: int = 0


def prepare_task(name: str, settings: TaskData, source: Path, out: Path) -> TaskReport:
    """Read a task, split it, remove leakage and write it to a folder.

    Published splits are taken as they are but for unusable and leaking rows; a file that is split
    here loses repeated and contradictory rows first. Training texts are the sentences of all train
    rows that are no test texts, so a pair that leaks by one sentence still gives the other.

    Args:
        name: The task's name, for messages.
        settings: The task.
        source: Folder with the task's files, or the one file itself.
        out: Folder for ``train``, ``validation``, ``test`` and ``texts`` (parquet) and
            ``report.json``; an existing one is replaced.

    Raises:
        DataError: Rows cannot be read, test rows have no text, a split is left empty, or has one
            label only where scores are not defined then.
        ConfigError: ``source`` and ``splits`` do not fit each other.
    """
    columns = TEXT_COLUMNS[settings.family]
    if settings.splits.files is not None:
        parts = _published(name, settings, settings.splits.files, source)
    else:
        assert settings.splits.hash is not None  # SplitSettings saw to it
        parts = _hashed(name, settings, settings.splits.hash, source)
    parts = _thinned(parts, settings)
    test_texts = normalised_set(_sentences(parts.splits["test"], columns))
    splits = {
        split: rows if split == "test" else without_leakage(rows, columns, test_texts)
        for split, rows in parts.splits.items()
    }
    sentences = _sentences(parts.splits["train"], columns)
    texts = [text for text in sentences if normalised(text) not in test_texts]
    for split, rows in splits.items():
        if rows.empty and len(parts.splits[split]):
            raise DataError(f"{name}: no {split} row is left of {len(parts.splits[split])}")
    label = COLUMNS[settings.family][-1]
    _check_variety(name, splits, label, VARIED_SPLITS[settings.family])
    report = TaskReport(
        task=name,
        family=settings.family,
        rows_read={key: rows.read for key, rows in parts.read.items()},
        unusable={key: rows.unusable for key, rows in parts.read.items()},
        duplicates=parts.duplicates,
        two_labels=parts.two_labels,
        not_taken=parts.not_taken,
        leaked={
            split: len(parts.splits[split]) - len(splits[split])
            for split in SPLITS
            if split != "test"
        },
        leaked_sentences=len(sentences) - len(texts),
        sizes={split: len(splits[split]) for split in SPLITS},
        texts=len(texts),
        labels=sorted({str(value) for value in splits["train"][label]} if label == "label" else ()),
    )
    _write(out, splits, texts, report)
    return report


def load_split(folder: Path, split: Split) -> pd.DataFrame:
    """Load a split of a prepared task: ``row`` and the columns of the family.

    Raises:
        DataError: The folder holds no such split.
    """
    path = folder / f"{split}.parquet"
    if not path.is_file():
        raise DataError(f"{path} is missing; prepare the task first")
    return pd.read_parquet(path)


def without_leakage(
    table: pd.DataFrame, columns: Sequence[str], test_texts: set[str]
) -> pd.DataFrame:
    """Return the rows of which no text is a test text, given in normalised form."""
    leaks = table[list(columns)].map(lambda text: normalised(text) in test_texts)
    return table[~leaks.any(axis="columns")].reset_index(drop=True)


def _published(name: str, settings: TaskData, files: FileSplits, source: Path) -> _Parts:
    if not source.is_dir():
        raise ConfigError(
            f"tasks.{name}.splits.files: the source must be a folder with the files, "
            f"{source} is none; use `splits.hash` for a single file"
        )
    read: dict[str, LabelledRows] = {}
    for split in SPLITS:
        file = getattr(files, split)
        if not isinstance(file, str):
            continue
        path = source / file
        read[split] = read_rows(path, settings)
        rows = read[split].unusable
        if split == "test" and rows and not settings.drop_unusable_test_rows:
            raise DataError(
                f"{path}: {len(rows)} test rows {UNUSABLE}: rows {listed(rows)}; mend the file or "
                f"set `tasks.{name}.drop_unusable_test_rows: true`"
            )
        log_unusable(path, rows)
    splits = {split: rows.table for split, rows in read.items()}
    if isinstance(files.validation, int):
        columns = TEXT_COLUMNS[settings.family]
        splits |= take_rows(splits["train"], columns, files.validation, name)
    if files.train is None:
        splits["train"] = splits["validation"].iloc[:0]
    return _Parts({split: splits[split] for split in SPLITS}, read)


def _hashed(name: str, settings: TaskData, sizes: HashSplits, source: Path) -> _Parts:
    path = single_file(source, f"name the file in `tasks.{name}.source`, or use `splits.files`")
    read = read_rows(path, settings)
    log_unusable(path, read.unusable)
    columns = TEXT_COLUMNS[settings.family]
    distinct: DistinctRows = distinct_rows(read.table, columns, COLUMNS[settings.family][-1])
    splits = hash_splits(distinct.table, columns, sizes, name)
    return _Parts(splits, {"all": read}, distinct.duplicates, distinct.two_labels)


def _thinned(parts: _Parts, settings: TaskData) -> _Parts:
    """Keep the share of the train rows that is asked for."""
    *texts, label = COLUMNS[settings.family]
    stratum = None if settings.family == "sts" else label
    whole = parts.splits["train"]
    train = share_of(whole, texts, settings.train_fraction, stratum)
    thinned = {**parts.splits, "train": train}
    return replace(parts, splits=thinned, not_taken=len(whole) - len(train))


def _sentences(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return the different sentences of the rows in order of first occurrence."""
    return list(dict.fromkeys(table[list(columns)].to_numpy().ravel().tolist()))


def _check_variety(
    name: str, splits: Mapping[str, pd.DataFrame], label: str, varied: Sequence[Split]
) -> None:
    for split in varied:
        values = splits[split][label].unique().tolist()
        if len(values) == 1:
            raise DataError(
                f"{name}: every {split} row has the {label} {values[0]!r}, and scores need two "
                f"different ones; give `tasks.{name}` other files, columns or `splits`"
            )


def _write(
    out: Path, splits: Mapping[str, pd.DataFrame], texts: Sequence[str], report: TaskReport
) -> None:
    tables = {**splits, "texts": pd.DataFrame({"text": texts}, dtype="str")}
    with atomic_directory(out) as folder:
        for stem, table in tables.items():
            table.to_parquet(folder / f"{stem}.parquet", index=False)
        write_json(folder / "report.json", asdict(report))
    logger.info(
        "%s: %s rows; %d train and %d validation rows dropped as leaks; %d texts, %d left out",
        report.task,
        ", ".join(f"{size} {split}" for split, size in report.sizes.items()),
        report.leaked["train"],
        report.leaked["validation"],
        report.texts,
        report.leaked_sentences,
    )
