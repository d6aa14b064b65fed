"""The repaired map: token occurrences that are each other's nearest by edit distance.

Repaired against the paper's map (`emo.alignment.mined_types`): occurrences and not types, so that
the second "the" meets the second "the"; pieces without marks on the original text; pairs that
share no character stay unmapped.
"""

import numpy as np

from emo.alignment.nearest import TextPairs, count_ties, edit_distances, mutual_nearest
from emo.alignment.pieces import Pieces, for_teacher_student
from emo.tokens import TextTokenizer, TokenizedText


class MinedPairs:
    """Maps the token occurrences of one text, one-to-one.

    Candidates are ordered by edit distance of their pieces, then by how far apart their spans'
    midpoints lie in the original text, then by index. A pair is kept when each is the other's
    first candidate and their distance is below the length of the longer piece.
    """

    def __init__(self, teacher: TextTokenizer, student: TextTokenizer) -> None:
        self._read_teacher, self._read_student = for_teacher_student(teacher, student)

    def __call__(self, text: str, teacher: TokenizedText, student: TokenizedText) -> TextPairs:
        """Map one text; special and prompt tokens take no part."""
        return pair_pieces(self._read_teacher(text, teacher), self._read_student(text, student))


def pair_pieces(teacher: Pieces, student: Pieces) -> TextPairs:
    """Pair the pieces of one text.

    Example:
        >>> teacher = Pieces([1, 2, 3], ["the", "cat", "the"], [3, 11, 19])
        >>> student = Pieces([1, 2], ["the", "cats"], [19, 11])
        >>> pair_pieces(teacher, student).teacher_position
        array([2, 3], dtype=int32)
    """
    distances = edit_distances(teacher.strings, student.strings)
    gaps = np.abs(np.subtract.outer(teacher.middles, student.middles)).astype(np.int64)
    cost = distances * (gaps.max(initial=0) + 1) + gaps
    teacher_index, student_index = mutual_nearest(cost)
    teacher_lengths = np.array([len(piece) for piece in teacher.strings], dtype=np.int32)
    student_lengths = np.array([len(piece) for piece in student.strings], dtype=np.int32)
    longer = np.maximum(teacher_lengths[teacher_index], student_lengths[student_index])
    kept = distances[teacher_index, student_index] < longer
    teacher_index, student_index = teacher_index[kept], student_index[kept]
    return TextPairs(
        teacher_position=np.array(teacher.positions, dtype=np.int32)[teacher_index],
        student_position=np.array(student.positions, dtype=np.int32)[student_index],
        distance=distances[teacher_index, student_index],
        teacher_tokens=len(teacher.strings),
        student_tokens=len(student.strings),
        ties=count_ties(distances, teacher_index, student_index),
    )
