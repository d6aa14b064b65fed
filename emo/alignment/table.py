"""The alignment of a text set as one table, in memory and on disk."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from emo.alignment.origin import AlignmentOrigin
from emo.alignment.pairs import TextPairs
from emo.errors import DataError
from emo.outputs import atomic_file

SCHEMA = pa.schema(
    [
        ("text", pa.int64()),
        ("teacher_position", pa.int32()),
        ("student_position", pa.int32()),
        ("distance", pa.int32()),
    ]
)
METADATA_KEY = "emo"
ORIGIN_KEY = "emo.origin"

Record = TypeVar("Record", "AlignmentStatistics", AlignmentOrigin)


@dataclass(frozen=True, slots=True)
class AlignmentStatistics:
    """What an alignment covers.

    Attributes:
        texts: Number of texts.
        pairs: Number of rows.
        teacher_tokens: Teacher tokens that could have been mapped: content tokens ("mined",
            "mined-dp", "span"), token types ("mined-types") or all but prompt tokens
            ("mined-masses").
        student_tokens: The same of the student.
        teacher_unmapped: How many of `teacher_tokens` stand in no row.
        student_unmapped: The same of the student.
        teacher_coverage: Share of `teacher_tokens` that stands in a row; 0 without tokens.
        student_coverage: The same of the student.
        mean_distance: Mean edit distance over the rows; 0 without rows.
        ties: Rows in which a neighbour as near (of the same edit distance, for "span" of the same
            overlap) was turned down.
        texts_without_pairs: Number of texts without a row.
    """

    texts: int
    pairs: int
    teacher_tokens: int
    student_tokens: int
    teacher_unmapped: int
    student_unmapped: int
    teacher_coverage: float
    student_coverage: float
    mean_distance: float
    ties: int
    texts_without_pairs: int

    def __str__(self) -> str:
        """Say it in one line."""
        return (
            f"{self.pairs} pairs in {self.texts} texts, {self.texts_without_pairs} texts without; "
            f"coverage {self.teacher_coverage:.1%} of the teacher's tokens and "
            f"{self.student_coverage:.1%} of the student's, {self.teacher_unmapped} and "
            f"{self.student_unmapped} unmapped; mean distance {self.mean_distance:.3f}, "
            f"{self.ties} ties"
        )


@dataclass(frozen=True, slots=True)
class Alignment:
    """Pairs of tokens in long form, sorted by text and teacher position.

    Attributes:
        text: Row of the text in its text set.
        teacher_position: Position of the teacher token.
        student_position: Position of the student token.
        distance: Edit distance between the two.
        statistics: What the alignment covers.
        origin: What it was made from; None for one that was put together by hand.
    """

    text: NDArray[np.int64]
    teacher_position: NDArray[np.int32]
    student_position: NDArray[np.int32]
    distance: NDArray[np.int32]
    statistics: AlignmentStatistics
    origin: AlignmentOrigin | None = None


def tabulate(pairs: TextPairs, texts: int, origin: AlignmentOrigin | None = None) -> Alignment:
    """Count what the pairs of a text set of so many texts cover."""
    teacher_mapped = _distinct(pairs.text, pairs.teacher_position)
    student_mapped = _distinct(pairs.text, pairs.student_position)
    statistics = AlignmentStatistics(
        texts=texts,
        pairs=len(pairs.text),
        teacher_tokens=pairs.teacher_tokens,
        student_tokens=pairs.student_tokens,
        teacher_unmapped=pairs.teacher_tokens - teacher_mapped,
        student_unmapped=pairs.student_tokens - student_mapped,
        teacher_coverage=teacher_mapped / max(pairs.teacher_tokens, 1),
        student_coverage=student_mapped / max(pairs.student_tokens, 1),
        mean_distance=float(pairs.distance.mean()) if len(pairs.distance) else 0.0,
        ties=pairs.ties,
        texts_without_pairs=texts - _distinct(pairs.text, np.zeros_like(pairs.teacher_position)),
    )
    return Alignment(
        text=pairs.text,
        teacher_position=pairs.teacher_position,
        student_position=pairs.student_position,
        distance=pairs.distance,
        statistics=statistics,
        origin=origin,
    )


def write_alignment(alignment: Alignment, path: Path) -> None:
    """Write the pairs as Parquet, with statistics and origin as JSON in the metadata."""
    metadata = {METADATA_KEY: json.dumps(asdict(alignment.statistics))}
    if alignment.origin is not None:
        metadata[ORIGIN_KEY] = json.dumps(asdict(alignment.origin))
    columns = [getattr(alignment, name) for name in SCHEMA.names]
    table = pa.table(columns, schema=SCHEMA.with_metadata(metadata))
    with atomic_file(path) as temporary:
        pq.write_table(table, temporary)


def read_alignment(path: Path, texts: range | None = None) -> Alignment:
    """Read what `write_alignment` wrote.

    Args:
        path: The file.
        texts: Texts whose pairs are read, in steps of 1; all when None. Statistics and numbers of
            texts stay those of the whole set.

    Raises:
        DataError: The file is missing, is no Parquet file or holds something else.
    """
    inside = texts and [("text", ">=", texts.start), ("text", "<", texts.stop)]
    try:
        table = pq.read_table(path, filters=inside)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{path}: cannot be read as an alignment ({error}); align again") from error
    if not table.schema.equals(SCHEMA):
        raise DataError(
            f"{path}: has columns {table.schema.names}, not an alignment's; align again"
        )
    statistics = _metadata(table.schema, METADATA_KEY, AlignmentStatistics, path)
    made = ORIGIN_KEY.encode() in (table.schema.metadata or {})
    origin = _metadata(table.schema, ORIGIN_KEY, AlignmentOrigin, path) if made else None
    columns = {name: table[name].to_numpy() for name in SCHEMA.names}
    return Alignment(**columns, statistics=statistics, origin=origin)


def read_statistics(path: Path) -> AlignmentStatistics:
    """Read what an alignment covers, and none of its pairs.

    Raises:
        DataError: The file is missing, is no Parquet file or holds something else.
    """
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{path}: cannot be read as an alignment ({error}); align again") from error
    return _metadata(schema, METADATA_KEY, AlignmentStatistics, path)


def _metadata(schema: pa.Schema, key: str, kind: type[Record], path: Path) -> Record:
    content = json.loads((schema.metadata or {}).get(key.encode(), b"{}"))
    expected = {field.name for field in fields(kind)}
    if content.keys() != expected:
        raise DataError(
            f"{path}: metadata key {key!r} lacks {sorted(expected - content.keys())}; align again"
        )
    return kind(**content)


def _distinct(text: NDArray[np.int64], position: NDArray[np.int32]) -> int:
    """Count distinct (text, position) combinations."""
    keys = np.sort(text << 32 | position)  # np.unique takes twenty times as long
    return int((np.diff(keys, prepend=-1) != 0).sum())
