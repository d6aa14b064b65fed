"""What the maps between token occurrences share: pieces in, one-to-one pairs out."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from emo.alignment.nearest import PairIndex
from emo.alignment.padded import Padded, padded
from emo.alignment.pairs import PairFinder, TextPairs
from emo.alignment.pieces import Pieces, for_teacher_student
from emo.tokens import TextTokenizer, TokenizedText


class PiecePairs(PairFinder):
    """Maps token occurrences one-to-one; special and prompt tokens take no part."""

    def __init__(self, teacher: TextTokenizer, student: TextTokenizer) -> None:
        super().__init__(teacher, student)
        self._read_teacher, self._read_student = for_teacher_student(teacher, student)

    def __call__(
        self,
        texts: Sequence[str],
        teacher: Sequence[TokenizedText],
        student: Sequence[TokenizedText],
    ) -> TextPairs:
        """Map a block."""
        return self.pair(*self.read(texts, teacher, student))

    def read(
        self,
        texts: Sequence[str],
        teacher: Sequence[TokenizedText],
        student: Sequence[TokenizedText],
    ) -> tuple[Pieces, Pieces]:
        """Read the pieces of both sides of a block."""
        return self._read_teacher.read(texts, teacher), self._read_student.read(texts, student)

    @classmethod
    def pair(cls, teacher: Pieces, student: Pieces) -> TextPairs:
        """Pair the pieces of a block."""
        places = [np.empty((3, 0), dtype=np.int64)]
        ties = 0
        for side_by_side in padded(teacher, student):
            pairs, tied = cls.match(side_by_side)
            places.append(np.stack([*side_by_side.places(pairs), side_by_side.distances[pairs]]))
            ties += tied
        # Pieces follow each other by text and position, so their order is the order of the pairs.
        teacher_place, student_place, distance = (found := np.concatenate(places, axis=1))[
            :, found[0].argsort()
        ]
        return TextPairs(
            text=np.searchsorted(teacher.bounds, teacher_place, side="right") - 1,
            teacher_position=teacher.positions[teacher_place],
            student_position=student.positions[student_place],
            distance=distance.astype(np.int32),
            teacher_tokens=len(teacher.strings),
            student_tokens=len(student.strings),
            ties=ties,
        )

    @staticmethod
    @abstractmethod
    def match(texts: Padded) -> tuple[PairIndex, int]:
        """Find the pairs of some texts, and in how many a neighbour as near was turned down."""
