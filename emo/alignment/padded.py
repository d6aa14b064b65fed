"""Texts of like size side by side in padded arrays, so that NumPy maps many at once.

Shapes: ``B`` texts, ``R`` teacher and ``S`` student tokens of the longest one, ``N`` tokens of one
side of the whole block.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emo.alignment.nearest import PairIndex, edit_distances
from emo.alignment.pieces import Pieces

# How many token pairs go side by side; bounds the memory, and the result does not depend on it.
CELLS = 1 << 16


@dataclass(frozen=True, slots=True)
class Padded:
    """Some texts of a block, each with a token on both sides.

    Attributes:
        text: Number of each text in the block, ``(B,)``.
        teacher: The teacher's pieces of the block.
        student: The student's pieces of the block.
        teacher_place: Where each token stands among the teacher's pieces, ``(B, R)``; padding
            repeats the last one of its text.
        student_place: The same of the student, ``(B, S)``.
        distances: Edit distances, int32 ``(B, R, S)``; padding holds a number above all others.
    """

    text: NDArray[np.int64]
    teacher: Pieces
    student: Pieces
    teacher_place: NDArray[np.int64]
    student_place: NDArray[np.int64]
    distances: NDArray[np.int32]

    @property
    def gaps(self) -> NDArray[np.int32]:
        """How far apart the midpoints of two spans lie, in half characters, ``(B, R, S)``."""
        teacher = self.teacher.middles[self.teacher_place]
        student = self.student.middles[self.student_place]
        gaps: NDArray[np.int32] = teacher[:, :, None] - student[:, None, :]
        return np.abs(gaps, out=gaps)

    @property
    def longer(self) -> NDArray[np.int32]:
        """Length of the longer piece of each pair, ``(B, R, S)``."""
        return np.maximum(
            self.teacher.lengths[self.teacher_place][:, :, None],
            self.student.lengths[self.student_place][:, None, :],
        )

    def blank(self, cost: NDArray[np.integer[Any]], value: int) -> None:
        """Write a value over the cost of every pair with a piece without characters, in place."""
        text, teacher = np.nonzero(self.teacher.lengths[self.teacher_place] == 0)
        cost[text, teacher] = value
        text, student = np.nonzero(self.student.lengths[self.student_place] == 0)
        cost[text, :, student] = value

    @property
    def sizes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Teacher and student tokens of each text, ``(B,)``."""
        return np.diff(self.teacher.bounds)[self.text], np.diff(self.student.bounds)[self.text]

    def alike(self, pairs: PairIndex) -> PairIndex:
        """Keep the pairs whose distance is below the longer length: the others share nothing."""
        teacher, student = self.places(pairs)
        longer = np.maximum(self.teacher.lengths[teacher], self.student.lengths[student])
        kept = self.distances[pairs] < longer
        return PairIndex(*(index[kept] for index in pairs))

    def places(self, pairs: PairIndex) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Say where the tokens of pairs stand among the pieces of the block."""
        return (
            self.teacher_place[pairs.text, pairs.teacher],
            self.student_place[pairs.text, pairs.student],
        )


def padded(teacher: Pieces, student: Pieces) -> Iterator[Padded]:
    """Cut a block into texts of like size; those without a token on either side are left out."""
    rows, columns = np.diff(teacher.bounds), np.diff(student.bounds)
    order = np.lexsort((columns, np.maximum(rows, columns)))  # wastes least on padding
    order = order[(rows[order] > 0) & (columns[order] > 0)]
    start = 0
    while start < len(order):
        end, height, width = start, 0, 0
        while end < len(order):
            height = max(height, int(rows[order[end]]))
            width = max(width, int(columns[order[end]]))
            if end > start and (end + 1 - start) * height * width > CELLS:
                break
            end += 1
        yield _side_by_side(order[start:end], teacher, student)
        start = end


def _side_by_side(text: NDArray[np.int64], teacher: Pieces, student: Pieces) -> Padded:
    teacher_place, student_place = _places(text, teacher), _places(text, student)
    shape = (len(text), teacher_place.shape[1], student_place.shape[1])
    farthest = int(max(teacher.lengths[teacher_place].max(), student.lengths[student_place].max()))
    distances = np.full(shape, farthest + 1, dtype=np.int32)
    for cells, row in zip(distances, text, strict=True):
        of_teacher, of_student = teacher.of_text(row), student.of_text(row)
        cells[: len(of_teacher), : len(of_student)] = edit_distances(of_teacher, of_student)
    return Padded(text, teacher, student, teacher_place, student_place, distances)


def _places(text: NDArray[np.int64], pieces: Pieces) -> NDArray[np.int64]:
    first, last = pieces.bounds[text][:, None], pieces.bounds[text + 1][:, None] - 1
    places: NDArray[np.int64] = np.minimum(first + np.arange((last - first).max() + 1), last)
    return places
