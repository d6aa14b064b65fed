"""Which attention rows of a text are compared: the more important ones of its mapped pairs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emo.alignment import Alignment
from emo.requests import RowRequest

PAPER_SHARE = 3
"""The paper keeps one in three mapped token types."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected positions of one text, teacher and student side."""

    teacher: NDArray[np.int64]
    student: NDArray[np.int64]


class Ranking(ABC):
    """Chooses among the mapped pairs of a text by the importance of their teacher tokens."""

    @abstractmethod
    def choose(self, text: int, teacher_position: NDArray[np.int64], most: int) -> NDArray[np.intp]:
        """Return the indices of the pairs that are kept."""


class TextRanking(Ranking):
    """By the importance of the mapped tokens themselves, the most important first.

    Args:
        importance: For each text, the importance of the token at each position.
    """

    def __init__(self, importance: Sequence[NDArray[np.float32]]) -> None:
        self._importance = importance

    def choose(self, text: int, teacher_position: NDArray[np.int64], most: int) -> NDArray[np.intp]:
        """Rank the mapped tokens, the first one first on ties."""
        importance = self._importance[text][teacher_position]
        return np.lexsort((teacher_position, -importance))[:most]


class ContentRanking(Ranking):
    """By the importance of all tokens of another text, matched by their ids (the paper's way).

    The other text is the same without stop words and digits. Special tokens take part in the
    ranking, so fewer pairs may be kept than were asked for, and where an id stands twice among the
    mapped tokens, more.

    Args:
        input_ids: For each text, the id at each position.
        content_ids: For each stop-word-free text, its ids, the most important first.
    """

    def __init__(
        self, input_ids: Sequence[NDArray[np.int64]], content_ids: Sequence[NDArray[np.int64]]
    ) -> None:
        self._input_ids = input_ids
        self._content_ids = content_ids

    def choose(self, text: int, teacher_position: NDArray[np.int64], most: int) -> NDArray[np.intp]:
        """Keep the pairs whose id is among the first ones of the other text."""
        ids = self._input_ids[text][teacher_position]
        return np.flatnonzero(np.isin(ids, self._content_ids[text][:most]))


def select_rows(
    request: RowRequest, alignment: Alignment, texts: int, ranking: Ranking
) -> list[Selection]:
    """Select the rows of each text.

    Args:
        request: How many rows, and whether the sides stay paired.
        alignment: The mapped pairs.
        texts: Number of texts.
        ranking: Which pairs are kept.
    """
    bounds = np.searchsorted(alignment.text, np.arange(texts + 1))
    selections = []
    for text in range(texts):
        inside = slice(bounds[text], bounds[text + 1])
        teacher = alignment.teacher_position[inside].astype(np.int64)
        student = alignment.student_position[inside].astype(np.int64)
        most = len(teacher) // PAPER_SHARE if request.rows is None else request.rows
        kept = ranking.choose(text, teacher, most)
        teacher, student = teacher[kept], student[kept]
        if not request.paired:
            teacher, student = np.sort(teacher), np.sort(student)
        selections.append(Selection(teacher, student))
    return selections
