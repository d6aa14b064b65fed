"""The repaired map: token occurrences that are each other's nearest by edit distance.

Repaired against the paper's map (`emo.alignment.mined_types`): occurrences and not types, so that
the second "the" meets the second "the"; pieces without marks on the original text; pairs that
share no character stay unmapped.
"""

from typing import Any

import numpy as np

from emo.alignment.nearest import PairIndex, count_ties, mutual_nearest
from emo.alignment.padded import Padded
from emo.alignment.piece_pairs import PiecePairs


class MinedPairs(PiecePairs):
    """Maps the token occurrences of a text, one-to-one.

    Candidates are ordered by edit distance of their pieces, then by how far apart their spans'
    midpoints lie in the original text, then by index. A pair is kept when each is the other's
    first candidate and their distance is below the length of the longer piece. Tokens that show
    nothing, such as a lone word-start mark, are nobody's candidates: their distance to a piece is
    that piece's length, which is often the least.
    """

    @staticmethod
    def match(texts: Padded) -> tuple[PairIndex, int]:
        """Pair mutual nearest pieces."""
        gaps = texts.gaps
        steps = int(gaps.max()) + 1
        # One whole number for both, of half the width where it fits.
        fits = (int(texts.distances.max()) + 1) * steps < 2**31
        kind: type[np.integer[Any]] = np.int32 if fits else np.int64
        cost = texts.distances * kind(steps)
        cost += gaps
        texts.blank(cost, np.iinfo(kind).max)
        pairs = texts.alike(mutual_nearest(cost))
        return pairs, count_ties(texts.distances, pairs)
