"""Edit distances between the strings of one text, and who is nearest to whom.

R and S are the numbers of teacher and student strings.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist


@dataclass(frozen=True, slots=True)
class TextPairs:
    """The map of one text; the arrays have one entry per pair, in the order of the teacher.

    Attributes:
        teacher_position: Position of the teacher token.
        student_position: Position of the student token.
        distance: Edit distance between the two.
        teacher_tokens: Number of teacher tokens that could have been mapped.
        student_tokens: The same of the student.
        ties: Pairs in which a neighbour of the same distance was turned down.
    """

    teacher_position: NDArray[np.int32]
    student_position: NDArray[np.int32]
    distance: NDArray[np.int32]
    teacher_tokens: int
    student_tokens: int
    ties: int


def edit_distances(teacher: Sequence[str], student: Sequence[str]) -> NDArray[np.int32]:
    """Compute the Levenshtein distance of each teacher string to each student string.

    A string that occurs again is measured once.

    Returns:
        Distances, (R, S).

    Example:
        >>> edit_distances(["bat", "bat", "café"], ["hat", "cafe"])
        array([[1, 3],
               [1, 3],
               [3, 1]], dtype=int32)
    """
    teacher_strings, teacher_index = _unique(teacher)
    student_strings, student_index = _unique(student)
    distances: NDArray[np.int32] = cdist(
        teacher_strings, student_strings, scorer=Levenshtein.distance, dtype=np.int32, workers=1
    )
    if len(teacher_strings) < len(teacher):
        distances = distances[teacher_index]
    if len(student_strings) < len(student):
        distances = distances[:, student_index]
    return distances


def mutual_nearest(cost: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find the pairs in which each is the other's nearest, the lower index first on ties.

    Args:
        cost: Costs, (R, S).

    Returns:
        Teacher and student indices of the pairs, ascending by teacher; one-to-one.

    Example:
        >>> mutual_nearest(np.array([[0, 2], [3, 1]]))
        (array([0, 1]), array([0, 1]))
        >>> mutual_nearest(np.array([[0, 2], [0, 1]]))  # the second teacher prefers student 0 too
        (array([0]), array([0]))
    """
    if not cost.size:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp)
    nearest_student = cost.argmin(axis=1)
    nearest_teacher = cost.argmin(axis=0)
    teacher = np.flatnonzero(nearest_teacher[nearest_student] == np.arange(len(cost)))
    return teacher, nearest_student[teacher]


def count_ties(
    distances: NDArray[np.int32], teacher: NDArray[np.intp], student: NDArray[np.intp]
) -> int:
    """Count the pairs whose distance another candidate of either partner shares."""
    paired = distances[teacher, student]
    of_teacher = (distances[teacher] == paired[:, None]).sum(axis=1) > 1
    of_student = (distances[:, student] == paired[None, :]).sum(axis=0) > 1
    return int((of_teacher | of_student).sum())


def _unique(strings: Sequence[str]) -> tuple[list[str], list[int]]:
    """List the distinct strings in order of appearance, and where each string went."""
    places: dict[str, int] = {}
    index = [places.setdefault(string, len(places)) for string in strings]
    return list(places), index
