"""The alignment of a text set as one table, in memory and on disk."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from emo.alignment.nearest import TextPairs
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
METADATA_KEY = b"emo"


@dataclass(frozen=True, slots=True)
class AlignmentStatistics:
    """What an alignment covers.

    Attributes:
        texts: Number of texts.
        pairs: Number of rows.
        teacher_tokens: Teacher tokens that could have been mapped: content tokens ("mined"),
            token types ("mined-types") or all but prompt tokens ("mined-masses").
        student_tokens: The same of the student.
        teacher_coverage: Share of `teacher_tokens` that stands in a row; 0 without tokens.
        student_coverage: The same of the student.
        mean_distance: Mean edit distance over the rows; 0 without rows.
        ties: Rows in which a neighbour of the same edit distance was turned down.
        texts_without_pairs: Number of texts without a row.
    """

    texts: int
    pairs: int
    teacher_tokens: int
    student_tokens: int
    teacher_coverage: float
    student_coverage: float
    mean_distance: float
    ties: int
    texts_without_pairs: int


@dataclass(frozen=True, slots=True)
class Alignment:
    """Pairs of tokens in long form, sorted by text and teacher position.

    Attributes:
        text: Row of the text in its text set.
        teacher_position: Position of the teacher token.
        student_position: Position of the student token.
        distance: Edit distance between the two.
        statistics: What the alignment covers.
    """

    text: NDArray[np.int64]
    teacher_position: NDArray[np.int32]
    student_position: NDArray[np.int32]
    distance: NDArray[np.int32]
    statistics: AlignmentStatistics


def tabulate(pairs: Sequence[TextPairs]) -> Alignment:
    """Join the maps of single texts, given in the order of the text set."""
    counts = np.array([len(text.distance) for text in pairs], dtype=np.int64)
    text = np.repeat(np.arange(len(pairs), dtype=np.int64), counts)
    teacher_position = _joined([text.teacher_position for text in pairs])
    student_position = _joined([text.student_position for text in pairs])
    distance = _joined([text.distance for text in pairs])
    teacher_tokens = sum(text.teacher_tokens for text in pairs)
    student_tokens = sum(text.student_tokens for text in pairs)
    statistics = AlignmentStatistics(
        texts=len(pairs),
        pairs=len(text),
        teacher_tokens=teacher_tokens,
        student_tokens=student_tokens,
        teacher_coverage=_distinct(text, teacher_position) / max(teacher_tokens, 1),
        student_coverage=_distinct(text, student_position) / max(student_tokens, 1),
        mean_distance=float(distance.mean()) if len(distance) else 0.0,
        ties=sum(text.ties for text in pairs),
        texts_without_pairs=int((counts == 0).sum()),
    )
    return Alignment(text, teacher_position, student_position, distance, statistics)


def write_alignment(alignment: Alignment, path: Path) -> None:
    """Write the pairs as Parquet, with the statistics as JSON under the metadata key "emo"."""
    statistics = json.dumps(asdict(alignment.statistics)).encode()
    columns = [getattr(alignment, name) for name in SCHEMA.names]
    table = pa.table(columns, schema=SCHEMA.with_metadata({METADATA_KEY: statistics}))
    with atomic_file(path) as temporary:
        pq.write_table(table, temporary)


def read_alignment(path: Path) -> Alignment:
    """Read what `write_alignment` wrote.

    Raises:
        DataError: The file is missing, is no Parquet file or holds something else.
    """
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{path}: cannot be read as an alignment ({error}); align again") from error
    if not table.schema.equals(SCHEMA):
        raise DataError(
            f"{path}: has columns {table.schema.names}, not an alignment's; align again"
        )
    statistics = json.loads((table.schema.metadata or {}).get(METADATA_KEY, b"{}"))
    expected = {field.name for field in fields(AlignmentStatistics)}
    if statistics.keys() != expected:
        raise DataError(
            f"{path}: metadata key 'emo' lacks {sorted(expected - statistics.keys())}; align again"
        )
    columns = {name: table[name].to_numpy() for name in SCHEMA.names}
    return Alignment(**columns, statistics=AlignmentStatistics(**statistics))


def _joined(columns: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate([np.empty(0, dtype=np.int32), *columns])


def _distinct(text: NDArray[np.int64], position: NDArray[np.int32]) -> int:
    """Count distinct (text, position) combinations."""
    return len(np.unique(text << 32 | position))
