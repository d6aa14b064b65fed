"""The paper's map for the attention relation, between the token types of one text.

Source: method-evidence 1.1, mapping M1, of the authors' code. Kept as it is: marks count as
edits, repeated tokens are one type, and no distance is too large. Changed: the authors iterate
over Python sets, so their ties depend on the hash seed; here the candidates are sorted.
"""

import numpy as np

from emo.alignment.nearest import TextPairs, count_ties, edit_distances, mutual_nearest
from emo.alignment.shown import ShownTokens, shown_tokens
from emo.tokens import TextTokenizer, TokenizedText


class MinedTypePairs:
    """Maps token types, one-to-one: exact match, else least edit distance, mutual only.

    Each kept pair of types is one row with the first position of each. The paper aligns not the
    original text but `emo.alignment.paper_text` of it, which the caller passes.
    """

    def __init__(self, teacher: TextTokenizer, student: TextTokenizer) -> None:
        self._teacher = teacher
        self._student = student

    def __call__(self, text: str, teacher: TokenizedText, student: TokenizedText) -> TextPairs:
        """Map one text; special and prompt tokens take no part."""
        teacher_first = first_positions(shown_tokens(self._teacher, teacher))
        student_first = first_positions(shown_tokens(self._student, student))
        teacher_types, student_types = sorted(teacher_first), sorted(student_first)
        # A string is at distance 0 only from itself, so "exact match first" needs no extra step.
        distances = edit_distances(teacher_types, student_types)
        teacher_index, student_index = mutual_nearest(distances)
        teacher_position = np.array(
            [teacher_first[teacher_types[index]] for index in teacher_index], dtype=np.int32
        )
        student_position = np.array(
            [student_first[student_types[index]] for index in student_index], dtype=np.int32
        )
        order = np.argsort(teacher_position)
        return TextPairs(
            teacher_position=teacher_position[order],
            student_position=student_position[order],
            distance=distances[teacher_index, student_index][order],
            teacher_tokens=len(teacher_types),
            student_tokens=len(student_types),
            ties=count_ties(distances, teacher_index, student_index),
        )


def first_positions(tokens: ShownTokens) -> dict[str, int]:
    """Find where each type that is not a special token stands first.

    Example:
        >>> first_positions(ShownTokens(["<s>", "▁a", "▁b", "▁a"], [True] + [False] * 3, "<s>"))
        {'▁a': 1, '▁b': 2}
    """
    first: dict[str, int] = {}
    for position, (string, special) in enumerate(zip(tokens.strings, tokens.special, strict=True)):
        if not special:
            first.setdefault(string, position)
    return first
