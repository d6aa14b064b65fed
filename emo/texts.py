"""Text sets: the texts that students are trained on, as files."""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from emo.errors import DataError
from emo.outputs import atomic_file

logger = logging.getLogger(__name__)

Text = str | tuple[str, str]
"""A text, or two that a model reads as one sequence."""


@dataclass(frozen=True, slots=True)
class TextSet:
    """The texts of a set, or its sentence pairs, with the keys that stores know them by.

    Attributes:
        texts: One a row.
        keys: Their keys, see :func:`text_key`.
    """

    texts: list[Text]
    keys: list[str]


def text_key(text: Text) -> str:
    """Return the key that stores know a text by: the hex SHA-256 of its UTF-8 bytes.

    The key of a pair is the digest of the two keys, so that no single text has it.
    """
    read = text if isinstance(text, str) else "".join(text_key(part) for part in text)
    return hashlib.sha256(read.encode("utf-8")).hexdigest()


def joined(text: Text) -> str:
    r"""Return a text as one string: a pair on a line each.

    Example:
        >>> joined(("first", "second"))
        'first\nsecond'
    """
    return text if isinstance(text, str) else "\n".join(text)


def evenly_spread(count: int, most: int) -> list[int]:
    """Return at most so many of the first ``count`` numbers, at even distances.

    >>> evenly_spread(10, 4), evenly_spread(2, 4)
    ([0, 2, 5, 7], [0, 1])
    """
    most = min(count, most)
    return [place * count // most for place in range(most)]


def save_texts(texts: TextSet, path: Path, more: Mapping[str, Any] | None = None) -> None:
    """Write a text set: columns ``text`` and ``key``, and ``second`` where it holds pairs.

    Args:
        texts: The text set.
        path: The file.
        more: Other columns, as they are.
    """
    columns: dict[str, Sequence[str]] = {}
    pairs = [text for text in texts.texts if isinstance(text, tuple)]
    if pairs:
        columns |= {"text": [pair[0] for pair in pairs], "second": [pair[1] for pair in pairs]}
    else:
        columns["text"] = [text for text in texts.texts if isinstance(text, str)]
    columns["key"] = texts.keys
    with atomic_file(path) as temporary:
        table = pd.DataFrame(columns, dtype="str").assign(**(more or {}))
        table.to_parquet(temporary, index=False)


def load_texts(path: Path) -> TextSet:
    """Load a text set: columns ``text`` and ``key``, and ``second`` where it holds pairs.

    Raises:
        DataError: The file is missing or lacks a column.
    """
    return _text_set(_open(path).read().to_pylist())


def count_texts(path: Path) -> int:
    """Return the number of texts of a set without reading them.

    Raises:
        DataError: The file is missing or lacks a column.
    """
    return int(_open(path).metadata.num_rows)


def text_chunks(path: Path, rows: range, size: int) -> Iterator[TextSet]:
    """Read some texts of a set, so many at a time, without reading the others.

    Args:
        path: The text set.
        rows: Which of its rows, in steps of 1.
        size: Texts of a chunk; the last one may have fewer.

    Raises:
        DataError: The file is missing or lacks a column.
    """
    file = _open(path)
    waiting: list[dict[str, Any]] = []
    first = 0
    for group in range(file.num_row_groups):
        after = first + file.metadata.row_group(group).num_rows
        if first < rows.stop and after > rows.start:
            for batch in file.iter_batches(size, row_groups=[group]):
                start, stop = (
                    min(max(end - first, 0), batch.num_rows) for end in (rows.start, rows.stop)
                )
                waiting += batch.slice(start, stop - start).to_pylist()
                first += batch.num_rows
                while len(waiting) >= size:
                    yield _text_set(waiting[:size])
                    waiting = waiting[size:]
        first = after
    if waiting:
        yield _text_set(waiting)


def _open(path: Path) -> pq.ParquetFile:
    if not path.is_file():
        raise DataError(f"{path} is missing; build the text set first")
    file = pq.ParquetFile(path)
    for column in ("text", "key"):
        if column not in file.schema_arrow.names:
            raise DataError(f"{path}: no column `{column}`; build the text set again")
    return file


def _text_set(rows: list[dict[str, Any]]) -> TextSet:
    texts: list[Text] = [
        (row["text"], row["second"]) if "second" in row else row["text"] for row in rows
    ]
    return TextSet(texts, [row["key"] for row in rows])
