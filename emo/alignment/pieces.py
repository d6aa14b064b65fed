"""The strings by which tokens of two tokenizers are compared.

A token's string is the slice of the text that it covers: two tokenizers that cut the same
characters then show the same string, whatever marks, bytes or folded characters their
vocabularies use. A slice is only as good as the offsets, and those are wrong now and then: a lone
word-start mark claims the letter after it, all three dots of a "…" claim the whole, control
characters shift what follows. So the slice is taken when the token's own normaliser turns it into
the token, and the decoded token otherwise. Two kinds of token show no characters at all and keep
their slice unchecked: the unknown token, and bytes that are no whole character.

Shapes: ``T`` texts of a block, ``N`` comparable tokens of all of them.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emo.alignment.known_pieces import KnownPieces
from emo.alignment.normalisers import Normaliser
from emo.tokens import TextTokenizer, TokenizedText

UNDECODABLE = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class Pieces:
    """The comparable tokens of a block of texts, special and prompt tokens left out.

    Attributes:
        strings: What to compare, ``N`` of them.
        lengths: Their lengths, int32 ``(N,)``.
        positions: Position of each token in its text, int32 ``(N,)``.
        spans: Its span in the text, int64 ``(N, 2)``.
        middles: Start plus end of each span: twice its midpoint, to stay whole, int32 ``(N,)``.
        bounds: Where the tokens of each text start, and where the last ones end, ``(T + 1,)``.
    """

    strings: list[str]
    lengths: NDArray[np.int32]
    positions: NDArray[np.int32]
    spans: NDArray[np.int64]
    middles: NDArray[np.int32]
    bounds: NDArray[np.int64]

    def of_text(self, text: int) -> list[str]:
        """Return the strings of one text of the block."""
        return self.strings[self.bounds[text] : self.bounds[text + 1]]


class PieceReader:
    """Reads the comparable pieces of one model's tokens, and remembers them.

    Args:
        tokenizer: The model's tokenizer, teacher or student.
        own: Its normaliser.
        as_student: The student tokenizer's normaliser, which is put on the pieces of both sides,
            so that a lower-casing student meets a lower-cased teacher.
    """

    def __init__(self, tokenizer: TextTokenizer, own: Normaliser, as_student: Normaliser) -> None:
        self._tokenizer = tokenizer
        self._own = own
        self._as_student = as_student
        self._unknown = tokenizer.unknown_id
        self._known = KnownPieces(self._piece)

    def read(self, texts: Sequence[str], tokenized: Sequence[TokenizedText]) -> Pieces:
        """Read the pieces of a block; `texts` are the original strings, without prompt.

        Raises:
            ConfigError: The tokenizer has no decoder.
        """
        prompt = np.concatenate([text.prompt for text in tokenized])
        inside = ~(prompt | np.concatenate([text.special for text in tokenized]))
        bounds = np.cumsum([0, *(len(text.prompt) for text in tokenized)])
        sizes = np.diff(bounds)
        # How many tokens with a position stand before each token, in the block and in its text.
        before = np.cumsum(np.concatenate([[False], ~prompt]))
        positions = before[:-1] - np.repeat(before[bounds[:-1]], sizes)
        spans = np.concatenate([text.spans for text in tokenized])[inside].astype(np.int64)
        text_starts = np.cumsum([0, *map(len, texts)])[:-1]
        strings, lengths = self._known.look_up(
            "".join(texts),
            np.concatenate([text.input_ids for text in tokenized])[inside],
            spans + np.repeat(text_starts, sizes)[inside, None],
        )
        return Pieces(
            strings=strings,
            lengths=lengths,
            positions=positions[inside].astype(np.int32),
            spans=spans,
            middles=(spans[:, 0] + spans[:, 1]).astype(np.int32),
            bounds=np.cumsum(np.concatenate([[False], inside]))[bounds],
        )

    def _piece(self, token_id: int, covered: str) -> str:
        """Choose between the slice and the token, then normalise as the student would."""
        surface = self._tokenizer.surface(token_id)
        piece = covered
        if covered != surface:  # else there is nothing to choose
            shows_nothing = token_id == self._unknown or UNDECODABLE in surface
            is_covered = shows_nothing or self._own(covered) == "".join(surface.split())
            piece = covered if is_covered else surface
        return self._as_student(unicodedata.normalize("NFC", piece))


def for_teacher_student(
    teacher: TextTokenizer, student: TextTokenizer
) -> tuple[PieceReader, PieceReader]:
    """Build the two readers whose pieces can be compared with each other."""
    as_student = Normaliser(student)
    return (
        PieceReader(teacher, Normaliser(teacher), as_student),
        PieceReader(student, as_student, as_student),
    )
