"""The paper's map for the attention relation, between the token types of one text.

Source: the first mapping of the authors' code. Kept as it is: marks count as
edits, repeated tokens are one type, and no distance is too large. Changed: the authors iterate
over Python sets, so their ties depend on the hash seed; here the candidates are sorted.
"""

import numpy as np

from emo.alignment.nearest import count_ties, edit_distances, mutual_nearest
from emo.alignment.pairs import TextPairs
from emo.alignment.shown import ShownPairs, ShownTokens


class MinedTypePairs(ShownPairs):
    """Maps token types, one-to-one: exact match, else least edit distance, mutual only.

    Each kept pair of types is one row with the first position of each. The paper aligns not the
    original text but `emo.alignment.paper_texts` of it.
    """

    @staticmethod
    def pair(teacher: ShownTokens, student: ShownTokens) -> TextPairs:
        """Map one text; special and prompt tokens take no part."""
        teacher_first, student_first = first_positions(teacher), first_positions(student)
        teacher_types, student_types = sorted(teacher_first), sorted(student_first)
        rows = np.empty((3, 0), dtype=np.int32)
        ties = 0
        if teacher_types and student_types:
            # A string is at distance 0 only from itself: "exact match first" needs no extra step.
            distances = edit_distances(teacher_types, student_types)[None]
            pairs = mutual_nearest(distances)
            ties = count_ties(distances, pairs)
            teacher_position = [teacher_first[teacher_types[index]] for index in pairs.teacher]
            student_position = [student_first[student_types[index]] for index in pairs.student]
            rows = np.array([teacher_position, student_position, distances[pairs]], dtype=np.int32)
            rows = rows[:, rows[0].argsort()]
        return TextPairs(
            text=np.zeros(rows.shape[1], dtype=np.int64),
            teacher_position=rows[0],
            student_position=rows[1],
            distance=rows[2],
            teacher_tokens=len(teacher_types),
            student_tokens=len(student_types),
            ties=ties,
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
