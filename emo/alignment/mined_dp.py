"""The order-preserving map: a dynamic programme over the pieces that `mined` compares.

Among all one-to-one maps that never cross, the one of least cost: for each pair its edit distance
by the length of the longer piece, for each token left over half a point. A pair whose pieces share
a character therefore always costs less than its two tokens left over, while one that shares none
is never made. Equal costs go to the map whose midpoints lie nearer together in the original text,
summed over its pairs; equal ones again to the map that is found when, from the end of both texts
backwards, a token is left over wherever that costs nothing, the teacher's before the student's.

On 4,291 sentences of nine benchmark sets (multilingual-E5 and MiniLM tokenizers) half a point pairs
87.0 % and 97.6 % of the tokens, and 99.96 % of the pairs overlap in the text; a quarter of a point
pairs 82.8 % and 92.8 %, of which 99.97 % overlap.

Costs are whole numbers, so that sums do not depend on their order and ties are ties. For pieces of
up to 16 characters they are exact; a share of a longer piece is rounded down.

Shapes: ``B`` texts, ``R`` teacher and ``S`` student tokens of the longest one.
Source: the alignment of two sequences by Needleman and Wunsch (1970), with costs in place of
similarities.
"""

import numpy as np
from numpy.typing import NDArray

from emo.alignment.nearest import PairIndex, count_ties
from emo.alignment.padded import Padded
from emo.alignment.piece_pairs import PiecePairs

# One point of cost in whole steps: the least number that 1 to 16 divide.
POINT = 720_720
LEFT_OVER = POINT // 2
# Above every sum of costs, and far enough below the end of int64 for one more to be added.
_NEVER = 1 << 61


class MinedDpPairs(PiecePairs):
    """Maps the token occurrences of a text one-to-one and in order, see the module."""

    @staticmethod
    def match(texts: Padded) -> tuple[PairIndex, int]:
        """Pair pieces at least cost."""
        gaps, longer = texts.gaps, texts.longer
        _, rows, columns = texts.distances.shape
        # Above any sum of gaps, so that these decide between equal costs only.
        steps = min(rows, columns) * int(gaps.max()) + 1
        share = texts.distances.astype(np.int64) * POINT // np.maximum(longer, 1)
        cost = np.where(texts.distances < longer, share * steps + gaps, _NEVER)
        totals = _totals(cost, LEFT_OVER * steps)
        pairs = _walk_back(totals, LEFT_OVER * steps, *texts.sizes)
        return pairs, count_ties(texts.distances, pairs)


def _totals(cost: NDArray[np.int64], left_over: int) -> NDArray[np.int64]:
    """Sum the least cost of the first i teacher and j student tokens, ``(B, R + 1, S + 1)``."""
    texts, rows, columns = cost.shape
    skipped = np.arange(columns + 1) * left_over
    totals = np.empty((texts, rows + 1, columns + 1), dtype=np.int64)
    totals[:, 0] = skipped
    for row in range(rows):
        above = totals[:, row]
        here = totals[:, row + 1]
        np.add(above, left_over, out=here)
        np.minimum(here[:, 1:], above[:, :-1] + cost[:, row], out=here[:, 1:])
        # Student tokens left over from any earlier column on.
        here -= skipped
        np.minimum.accumulate(here, axis=1, out=here)
        here += skipped
    return totals


def _walk_back(
    totals: NDArray[np.int64], left_over: int, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> PairIndex:
    """Read the pairs of all texts off the totals, from the end of each."""
    text = np.arange(len(totals))
    row, column = rows.copy(), columns.copy()
    found = []
    while len(text):
        here = totals[text, row, column]
        up = here == totals[text, row - 1, column] + left_over
        back = ~up & (here == totals[text, row, column - 1] + left_over)
        paired = ~(up | back)
        row = row - (up | paired)
        column = column - (back | paired)
        found.append(np.stack([text[paired], row[paired], column[paired]]))
        going = (row > 0) & (column > 0)
        text, row, column = text[going], row[going], column[going]
    return PairIndex(*np.concatenate(found, axis=1))
