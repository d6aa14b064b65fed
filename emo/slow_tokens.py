"""Tokens of a slow tokenizer, which gives no character offsets: they are found in the text.

Text and tokens are compared without case, accents, compatibility forms and whitespace, since
tokenizers drop these. Each token is looked for where the one before it ended; a token that does
not stand there may stand a little further on, behind characters that the tokenizer dropped or
does not know. Texts that lose their start are walked from their end.
"""

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from transformers import PreTrainedTokenizerBase

from emo.raw_tokens import RawTokens, Read
from emo.surfaces import SurfaceReader

# How many characters may lie unread between a token and the next; a token that stands nowhere
# near must not carry the walk away.
SKIPPED = 64
# Marks that show no characters of their own.
_MARKS = "▁Ġ "


def encode_slow(
    tokenizer: PreTrainedTokenizerBase,
    surface: SurfaceReader,
    reads: Sequence[Read],
    max_length: int,
) -> RawTokens:
    """Tokenize a block and rebuild its offsets; a token that is not found gets none.

    Args:
        tokenizer: A slow tokenizer.
        surface: Reader of its tokens' characters.
        reads: Strings with prompt, or pairs.
        max_length: Longest sequence, special tokens counted.
    """
    ids, special, spans = [], [], []
    for read in reads:
        batch = tokenizer(
            *((read,) if isinstance(read, str) else read),
            truncation=True,
            max_length=max_length,
            return_special_tokens_mask=True,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        ids.append(batch["input_ids"])
        special.append([bool(flag) for flag in batch["special_tokens_mask"]])
        backwards = tokenizer.truncation_side == "left"
        pieces = _pieces(tokenizer, surface, ids[-1], special[-1])
        spans.append(_walked(read, pieces, backwards))
    found = np.array(list(chain.from_iterable(spans)), dtype=np.int64).reshape(-1, 2)
    return RawTokens(
        input_ids=np.array(list(chain.from_iterable(ids)), dtype=np.int64),
        special=np.array(list(chain.from_iterable(special)), dtype=bool),
        starts=found[:, 0],
        ends=found[:, 1],
        counts=np.array([len(row) for row in ids], dtype=np.int64),
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    """Tokens that show characters only together, such as the bytes of one; most are alone."""

    tokens: int
    folded: str
    special: bool
    unknown: bool


def _pieces(
    tokenizer: PreTrainedTokenizerBase,
    surface: SurfaceReader,
    ids: Sequence[int],
    special: Sequence[bool],
) -> list[_Piece]:
    pieces: list[_Piece] = []
    start = 0
    while start < len(ids):
        size = 1 if special[start] else _run(tokenizer, surface, ids[start:])
        shown = surface(ids[start]) if size == 1 else surface.of_run(ids[start : start + size])
        unknown = ids[start] == tokenizer.unk_token_id
        pieces.append(_Piece(size, _folded(shown)[0], special[start], unknown))
        start += size
    return pieces


def _run(tokenizer: PreTrainedTokenizerBase, surface: SurfaceReader, ids: Sequence[int]) -> int:
    """Count the tokens from the first on that make up whole characters; 1 if none do."""
    token = tokenizer.convert_ids_to_tokens([ids[0]])[0]
    if _whole(surface(ids[0])) or not token.strip(_MARKS):
        return 1
    longest = min(4, len(ids))  # bytes of one character in UTF-8
    return next((n for n in range(2, longest + 1) if _whole(surface.of_run(ids[:n]))), 1)


def _whole(shown: str) -> bool:
    return bool(shown) and "\N{REPLACEMENT CHARACTER}" not in shown


def _walked(read: Read, pieces: Sequence[_Piece], backwards: bool) -> list[tuple[int, int]]:
    """Find the span of each token in the joined string."""
    whole = read if isinstance(read, str) else "\n".join(read)
    folded, origin = _folded(whole)
    origin.append(len(whole))
    # Where the second text starts, in the direction of the walk.
    seam = 0
    if not isinstance(read, str):
        seam = len(_folded(read[0])[0])
    find: Callable[[str, int, int], int] = folded.find
    if backwards:
        pieces = pieces[::-1]
        reverse = folded[::-1]
        seam = len(folded) - seam

        def find(part: str, start: int, end: int) -> int:
            return reverse.find(part[::-1], start, end)

    spans: list[tuple[int, int]] = []
    cursor = 0
    for number, piece in enumerate(pieces):
        if piece.special:
            spans += [(0, 0)] * piece.tokens
            cursor = max(cursor, seam) if number else cursor
            continue
        ahead = 0 if piece.unknown else SKIPPED
        size = len(piece.folded)
        place = find(piece.folded, cursor, cursor + size + ahead) if size else -1
        if place < 0:
            start = len(folded) - cursor if backwards else cursor
            spans += [(origin[start], origin[start])] * piece.tokens
            continue
        cursor = place + size
        first = len(folded) - cursor if backwards else place
        spans += [(origin[first], origin[first + size - 1] + 1)] * piece.tokens
    return spans[::-1] if backwards else spans


def _folded(text: str) -> tuple[str, list[int]]:
    """Drop what tokenizers drop, and say from which character each one left over comes.

    Example:
        >>> _folded("Né ﬁ")
        ('nefi', [0, 1, 3, 3])
    """
    kept: list[str] = []
    origin: list[int] = []
    for index, character in enumerate(text):
        for part in unicodedata.normalize("NFKD", character).casefold():
            if not (part.isspace() or unicodedata.combining(part)):
                kept.append(part)
                origin.append(index)
    return "".join(kept), origin
