"""The strings by which tokens of two tokenizers are compared.

A token's string is the slice of the text that it covers: two tokenizers that cut the same
characters then show the same string, whatever marks, bytes or folded characters their
vocabularies use. A slice is only as good as the offsets, and those are wrong now and then: a lone
word-start mark claims the letter after it, all three dots of a "…" claim the whole, control
characters shift what follows. So the slice is taken when the token's own normaliser turns it into
the token, and the decoded token otherwise. Two kinds of token show no characters at all and keep
their slice unchecked: the unknown token, and bytes that are no whole character.
"""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from emo.tokens import TextTokenizer, TokenizedText

UNDECODABLE = "\N{REPLACEMENT CHARACTER}"
# SentencePiece's mark for a space; normalisers write it into plain text too.
SPACE_MARK = "\N{LOWER ONE EIGHTH BLOCK}"
CACHED_PIECES = 1 << 18


@dataclass(frozen=True, slots=True)
class Pieces:
    """The comparable tokens of one text, special and prompt tokens left out.

    Attributes:
        positions: Position of each token.
        strings: What to compare.
        middles: Start plus end of each token's span: twice its midpoint, to stay whole.
    """

    positions: list[int]
    strings: list[str]
    middles: list[int]


class PieceReader:
    """Reads the comparable pieces of one model's tokens.

    Args:
        tokenizer: The model's tokenizer, teacher or student.
        student: The student's tokenizer, whose normaliser is put on the pieces of both sides, so
            that a lower-casing student meets a lower-cased teacher.
    """

    def __init__(self, tokenizer: TextTokenizer, student: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self._student = student
        self._piece = lru_cache(CACHED_PIECES)(self._read_piece)

    def __call__(self, text: str, tokenized: TokenizedText) -> Pieces:
        """Read the pieces of one tokenized text; `text` is the original, without prompt."""
        pieces = Pieces([], [], [])
        position = 0
        for token_id, in_prompt, special, (start, end) in zip(
            tokenized.input_ids, tokenized.prompt, tokenized.special, tokenized.spans, strict=True
        ):
            if not (in_prompt or special):
                pieces.positions.append(position)
                pieces.strings.append(self._piece(token_id, text[start:end]))
                pieces.middles.append(start + end)
            position += not in_prompt
        return pieces

    def _read_piece(self, token_id: int, covered: str) -> str:
        """Choose between the slice and the token, then normalise as the student would."""
        surface = self._tokenizer.surface(token_id)
        shows_nothing = token_id == self._tokenizer.tokenizer.unk_token_id or UNDECODABLE in surface
        is_covered = _normalised(covered, self._tokenizer) == "".join(surface.split())
        piece = covered if shows_nothing or is_covered else surface
        return _normalised(unicodedata.normalize("NFC", piece), self._student)


def for_teacher_student(
    teacher: TextTokenizer, student: TextTokenizer
) -> tuple[PieceReader, PieceReader]:
    """Build the two readers whose pieces can be compared with each other."""
    return PieceReader(teacher, student), PieceReader(student, student)


def _normalised(text: str, tokenizer: TextTokenizer) -> str:
    """Apply a tokenizer's normaliser, if it has one, and drop all space.

    Normalisers add space of their own: a mark in front, blanks around each Chinese character.
    """
    normalizer = tokenizer.tokenizer.backend_tokenizer.normalizer
    normalised: str = text if normalizer is None else normalizer.normalize_str(text)
    return "".join(normalised.replace(SPACE_MARK, " ").split())
