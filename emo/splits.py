"""Split and thin labelled rows by the digest of the text, the same on every machine."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from emo.config_tasks import HashSplits
from emo.errors import DataError


@dataclass(frozen=True, slots=True)
class DistinctRows:
    """Rows of which no two have the same texts.

    Attributes:
        table: The rows, in file order, texts without surrounding whitespace.
        duplicates: Rows left out that repeat an earlier row's texts and label.
        two_labels: Rows left out because their texts occur with different labels.
    """

    table: pd.DataFrame
    duplicates: int
    two_labels: int


def distinct_rows(table: pd.DataFrame, texts: Sequence[str], label: str) -> DistinctRows:
    """Drop repeated rows, and all rows whose texts contradict each other in the label.

    >>> table = pd.DataFrame({"text": ["a", "a ", "b", "b"], "label": ["x", "x", "x", "y"]})
    >>> distinct_rows(table, ["text"], "label")
    DistinctRows(table=  text label
    0    a     x, duplicates=1, two_labels=2)
    """
    stripped = table.assign(**{text: table[text].str.strip() for text in texts})
    once = stripped.drop_duplicates([*texts, label])
    agreeing = once[~once.duplicated(list(texts), keep=False)]
    return DistinctRows(
        agreeing.reset_index(drop=True), len(table) - len(once), len(once) - len(agreeing)
    )


def hash_splits(
    table: pd.DataFrame, texts: Sequence[str], sizes: HashSplits, name: str
) -> Mapping[str, pd.DataFrame]:
    """Split rows: test has the smallest SHA-256 digests of the text, validation the next.

    The two texts of a pair are joined by a tab. Rows keep the order of the file.

    Raises:
        DataError: No row would be left for training; the message has ``name`` and both numbers.
    """
    held_out = sizes.test + sizes.validation
    if len(table) <= held_out:
        raise DataError(
            f"{name}: {len(table)} different usable rows are too few for {sizes.test} test and "
            f"{sizes.validation} validation rows and some to train on; lower `splits.hash`"
        )
    rank = _ranks(table, texts)
    return {
        "train": table[rank > held_out].reset_index(drop=True),
        "validation": table[(rank > sizes.test) & (rank <= held_out)].reset_index(drop=True),
        "test": table[rank <= sizes.test].reset_index(drop=True),
    }


def take_rows(
    table: pd.DataFrame, texts: Sequence[str], validation: int, name: str
) -> Mapping[str, pd.DataFrame]:
    """Take the rows with the smallest digests out of a train split, for validation.

    Rows with the same texts stay together, so that a few more may be taken.

    Raises:
        DataError: No row would be left for training; the message has ``name`` and both numbers.
    """
    if len(table) <= validation:
        raise DataError(
            f"{name}: {len(table)} usable train rows are too few for {validation} validation rows "
            "and some to train on; lower `splits.files.validation`"
        )
    taken = _ranks(table, texts, method="min") <= validation
    return {
        "train": table[~taken].reset_index(drop=True),
        "validation": table[taken].reset_index(drop=True),
    }


def share_of(
    table: pd.DataFrame, texts: Sequence[str], fraction: float, label: str | None
) -> pd.DataFrame:
    """Keep a share of rows: those of each label with the smallest SHA-256 digests of the text.

    A smaller share is part of a larger one, and every label keeps one row at least. Rows keep the
    order of the file.

    Args:
        table: The rows.
        texts: Columns of the texts; the two texts of a pair are joined by a tab.
        fraction: The share.
        label: Column of the label, of each of which the share is taken; None for scores.

    >>> table = pd.DataFrame({"text": list("abcd"), "label": list("xxxy")})
    >>> share_of(table, ["text"], 0.5, "label")
      text label
    0    b     x
    1    c     x
    2    d     y
    """
    if fraction == 1.0 or table.empty:
        return table
    strata = table[label] if label else pd.Series(0, index=table.index)
    groups = _ranks(table, texts).groupby(strata)
    kept = (fraction * groups.transform("size")).round().clip(lower=1)
    return table[groups.rank(method="first") <= kept].reset_index(drop=True)


def _ranks(
    table: pd.DataFrame, texts: Sequence[str], method: Literal["first", "min"] = "first"
) -> "pd.Series[float]":
    """Number rows by the digests of their texts, from 1."""
    keys = table[list(texts)].agg("\t".join, axis="columns")
    return keys.map(lambda key: hashlib.sha256(key.encode()).hexdigest()).rank(method=method)
