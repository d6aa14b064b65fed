"""Which attention rows of a text are compared: the more important ones of its mapped pairs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emo.alignment import Alignment
from emo.requests import RowRequest
from emo.tokens import TokenizedText

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


def build_ranking(
    request: RowRequest,
    tokenized: Sequence[TokenizedText],
    ranked: Sequence[TokenizedText],
    importance: Sequence[NDArray[np.float32]],
) -> Ranking:
    """Build the ranking that a request asks for.

    Args:
        request: What is asked for.
        tokenized: Teacher tokens of the texts whose rows are compared.
        ranked: Those of the texts by whose importance they are ranked.
        importance: What each token of these receives.
    """
    if request.ranking == "text":
        return TextRanking(importance)
    content_ids = [
        _ids(text)[np.argsort(-weight, kind="stable")]
        for text, weight in zip(ranked, importance, strict=True)
    ]
    return ContentRanking([_ids(text) for text in tokenized], content_ids)


def select_rows(
    request: RowRequest, alignment: Alignment, texts: Sequence[int], ranking: Ranking
) -> list[Selection]:
    """Select the rows of each text.

    Args:
        request: How many rows, and whether the sides stay paired.
        alignment: The mapped pairs.
        texts: Numbers of the texts in the alignment.
        ranking: Which pairs are kept; it counts these texts from 0.
    """
    starts = np.searchsorted(alignment.text, texts)
    ends = np.searchsorted(alignment.text, texts, side="right")
    selections = []
    for text, (start, end) in enumerate(zip(starts, ends, strict=True)):
        inside = slice(start, end)
        teacher = alignment.teacher_position[inside].astype(np.int64)
        student = alignment.student_position[inside].astype(np.int64)
        most = len(teacher) // PAPER_SHARE if request.rows is None else request.rows
        kept = ranking.choose(text, teacher, most)
        teacher, student = teacher[kept], student[kept]
        if not request.paired:
            teacher, student = np.sort(teacher), np.sort(student)
        selections.append(Selection(teacher, student))
    return selections


def _ids(text: TokenizedText) -> NDArray[np.int64]:
    return text.input_ids[text.places]
