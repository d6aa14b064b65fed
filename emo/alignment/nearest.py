"""Edit distances between the strings of a text, and who is nearest to whom.

Shapes: ``B`` texts, ``R`` teacher and ``S`` student strings of the longest one, ``P`` pairs.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist


class PairIndex(NamedTuple):
    """Where pairs stand in a ``(B, R, S)`` array: three indices for each, ``(P,)``."""

    text: NDArray[np.intp]
    teacher: NDArray[np.intp]
    student: NDArray[np.intp]


def edit_distances(teacher: Sequence[str], student: Sequence[str]) -> NDArray[np.int32]:
    """Compute the Levenshtein distance of each teacher string to each student string.

    Returns:
        Distances, (R, S).

    Example:
        >>> edit_distances(["bat", "bat", "café"], ["hat", "cafe"])
        array([[1, 3],
               [1, 3],
               [3, 1]], dtype=int32)
    """
    distances: NDArray[np.int32] = cdist(
        teacher, student, scorer=Levenshtein.distance, dtype=np.int32, workers=1
    )
    return distances


def mutual_nearest(cost: NDArray[np.integer[Any]]) -> PairIndex:
    """Find the pairs in which each is the other's nearest, the lower index first on ties.

    Args:
        cost: Costs, (B, R, S), R and S being 1 at least. Padding costs more than anything else
            in its row and column, so that it is nobody's nearest.

    Returns:
        The pairs, ascending by text and teacher; one-to-one.

    Example:
        >>> mutual_nearest(np.array([[[0, 2], [3, 1]]]))[1:]
        (array([0, 1]), array([0, 1]))
        >>> mutual_nearest(np.array([[[0, 2], [0, 1]]]))[1:]  # both teachers prefer student 0
        (array([0]), array([0]))
    """
    nearest_student = cost.argmin(axis=2)
    nearest_teacher = cost.argmin(axis=1)
    returned = np.take_along_axis(nearest_teacher, nearest_student, axis=1)
    text, teacher = np.nonzero(returned == np.arange(cost.shape[1]))
    return PairIndex(text, teacher, nearest_student[text, teacher])


def count_ties(measure: NDArray[np.integer[Any]], pairs: PairIndex) -> int:
    """Count the pairs whose measure another candidate of either partner shares.

    Args:
        measure: What was compared first, such as the edit distance, (B, R, S); padding holds a
            value that no pair has.
        pairs: The pairs.
    """
    text, teacher, student = pairs
    paired = measure[pairs]
    of_teacher = (measure[text, teacher] == paired[:, None]).sum(axis=1) > 1
    of_student = (measure[text, :, student] == paired[:, None]).sum(axis=1) > 1
    return int((of_teacher | of_student).sum())
