"""The map by place alone: tokens whose spans overlap most in the original text.

Shapes: ``B`` texts, ``R`` teacher and ``S`` student tokens of the longest one.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from emo.alignment.nearest import PairIndex, count_ties, mutual_nearest
from emo.alignment.padded import Padded
from emo.alignment.piece_pairs import PiecePairs
from emo.alignment.pieces import Pieces
from emo.errors import ConfigError
from emo.tokens import TextTokenizer, TokenizedText

# A whole overlap in whole steps; distinct shares of spans below 32768 characters stay distinct.
WHOLE = 1 << 30


class SpanPairs(PiecePairs):
    """Maps token occurrences one-to-one by where they stand.

    Candidates are ordered by the share of their spans that overlaps (intersection by union), then
    by how far apart the midpoints lie, then by index. A pair is kept when each is the other's
    first candidate and the two overlap. Tokens with an empty span stay unmapped.
    """

    def read(
        self,
        texts: Sequence[str],
        teacher: Sequence[TokenizedText],
        student: Sequence[TokenizedText],
    ) -> tuple[Pieces, Pieces]:
        """Read the pieces of both sides.

        Raises:
            ConfigError: A fast tokenizer gave no offsets for a token.
        """
        pieces = super().read(texts, teacher, student)
        for tokenizer, side in zip((self._teacher, self._student), pieces, strict=True):
            _require_places(tokenizer, texts, side)
        return pieces

    @staticmethod
    def match(texts: Padded) -> tuple[PairIndex, int]:
        """Pair tokens that overlap most."""
        share = _overlap(
            texts.teacher.spans[texts.teacher_place][:, :, None],
            texts.student.spans[texts.student_place][:, None, :],
        )
        share[texts.distances > texts.longer] = -1  # padding
        gaps = texts.gaps
        pairs = mutual_nearest((WHOLE - share) * (int(gaps.max()) + 1) + gaps)
        kept = share[pairs] > 0
        pairs = PairIndex(*(index[kept] for index in pairs))
        return pairs, count_ties(share, pairs)


def _overlap(teacher: NDArray[np.int64], student: NDArray[np.int64]) -> NDArray[np.int64]:
    """Compute intersection by union of spans ``(..., 2)`` that broadcast, 0 for empty ones."""
    starts, ends = np.maximum(teacher, student), np.minimum(teacher, student)
    common = np.maximum(ends[..., 1] - starts[..., 0], 0)
    union = starts[..., 1] - ends[..., 0]
    share: NDArray[np.int64] = common * WHOLE // np.maximum(union, 1)
    return share


def _require_places(tokenizer: TextTokenizer, texts: Sequence[str], pieces: Pieces) -> None:
    """Refuse visible tokens without a place: pairing them by their order would be a guess.

    A slow tokenizer's places are looked for, so that some may be missing.
    """
    if not tokenizer.tokenizer.is_fast:
        return
    lost = np.flatnonzero((pieces.lengths > 0) & (pieces.spans[:, 1] <= pieces.spans[:, 0]))
    if len(lost):
        text = int(np.searchsorted(pieces.bounds, lost[0], side="right")) - 1
        raise ConfigError(
            f"tokenizer {tokenizer.tokenizer.name_or_path!r} gives no character offsets for "
            f"{pieces.strings[lost[0]]!r} in the text {texts[text][:60]!r}; align with `mined` or "
            "`mined-dp`, which do not need them, or mend its tokenizer.json"
        )
