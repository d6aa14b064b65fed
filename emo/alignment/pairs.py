"""The pairs of a block of texts, as every method gives them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emo.tokens import TextTokenizer, TokenizedText


@dataclass(frozen=True, slots=True)
class TextPairs:
    """The map of a text or of a block of texts; arrays have one entry per pair.

    Attributes:
        text: Number of the text in its block, ascending, int64.
        teacher_position: Position of the teacher token, ascending within a text, int32.
        student_position: Position of the student token, int32.
        distance: Edit distance between the two, int32.
        teacher_tokens: Number of teacher tokens that could have been mapped.
        student_tokens: The same of the student.
        ties: Pairs in which a neighbour as near was turned down.
    """

    text: NDArray[np.int64]
    teacher_position: NDArray[np.int32]
    student_position: NDArray[np.int32]
    distance: NDArray[np.int32]
    teacher_tokens: int
    student_tokens: int
    ties: int


class PairFinder(ABC):
    """Maps the tokens of blocks of texts; each method is one.

    Args:
        teacher: The teacher's tokenizer.
        student: The student's tokenizer.
    """

    def __init__(self, teacher: TextTokenizer, student: TextTokenizer) -> None:
        self._teacher = teacher
        self._student = student

    @abstractmethod
    def __call__(
        self,
        texts: Sequence[str],
        teacher: Sequence[TokenizedText],
        student: Sequence[TokenizedText],
    ) -> TextPairs:
        """Map a block of one text or more.

        Args:
            texts: The strings that spans count in.
            teacher: The teacher's tokens of each text.
            student: The student's tokens of each text.
        """


def chain_pairs(blocks: Iterable[TextPairs], sizes: Sequence[int]) -> TextPairs:
    """Join the maps of blocks that follow each other, of so many texts each."""
    blocks = list(blocks)
    firsts = np.cumsum([0, *sizes])
    return TextPairs(
        text=_joined(
            [block.text + first for block, first in zip(blocks, firsts, strict=False)], np.int64
        ),
        teacher_position=_joined([block.teacher_position for block in blocks], np.int32),
        student_position=_joined([block.student_position for block in blocks], np.int32),
        distance=_joined([block.distance for block in blocks], np.int32),
        teacher_tokens=sum(block.teacher_tokens for block in blocks),
        student_tokens=sum(block.student_tokens for block in blocks),
        ties=sum(block.ties for block in blocks),
    )


def _joined(columns: list[NDArray[Any]], dtype: type[np.integer[Any]]) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype=dtype), *columns])
