"""Pieces that were read before, so that a token costs a look and not a Python call.

Nearly every token of a text was seen before with the same slice. The first slice of a token id is
kept as a number that its characters make up, so that NumPy compares a block of tokens with what
is known at once; only what differs, or is too long or too far from Latin for such a number, goes
through a dictionary.

Shapes: ``N`` tokens of a block, ``C`` characters of its texts.
"""

from array import array
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

# Bounds the memory of the pieces that are kept; the result does not depend on it.
CACHED_PIECES = 1 << 18

# Characters of one byte that a 64-bit word holds.
_WORD = 8
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], dtype=np.uint64)


class KnownPieces:
    """The pieces of token ids and the slices that they cover.

    Args:
        read: Makes the piece of a token id and a slice that have not been seen.
    """

    def __init__(self, read: Callable[[int, str], str]) -> None:
        self._read = read
        self._forget()

    def look_up(
        self, whole: str, ids: NDArray[np.int64], spans: NDArray[np.int64]
    ) -> tuple[list[str], NDArray[np.int32]]:
        """Find the pieces of a block's tokens.

        Args:
            whole: The texts of the block behind each other.
            ids: Token ids, ``(N,)``.
            spans: What each token covers in the whole, ``(N, 2)``.

        Returns:
            The pieces and their lengths, ``(N,)``.
        """
        if len(self._strings) > CACHED_PIECES:
            self._forget()
        self._make_room(int(ids.max(initial=-1)) + 1)
        words, exact = _words(whole, spans)
        unseen = np.flatnonzero(exact & (self._first_number[ids] < 0))
        first_seen = unseen[np.unique(ids[unseen], return_index=True)[1]]
        self._first_number[ids[first_seen]] = self._numbered(whole, ids, spans, first_seen)
        self._first_word[ids[first_seen]] = words[first_seen]
        numbers = self._first_number[ids]
        other = np.flatnonzero(~exact | (self._first_word[ids] != words))
        numbers[other] = self._numbered(whole, ids, spans, other)
        strings = list(map(self._strings.__getitem__, numbers.tolist()))
        return strings, np.frombuffer(self._lengths, dtype=np.int32)[numbers]

    def _numbered(
        self,
        whole: str,
        ids: NDArray[np.int64],
        spans: NDArray[np.int64],
        places: NDArray[np.intp],
    ) -> list[int]:
        """Number the pieces of some tokens, one by one."""
        slices = (whole[start:end] for start, end in spans[places].tolist())
        return list(map(self._number, ids[places].tolist(), slices))

    def _number(self, token_id: int, covered: str) -> int:
        number = self._numbers.get((token_id, covered))
        if number is None:
            number = self._numbers[token_id, covered] = len(self._strings)
            self._strings.append(self._read(token_id, covered))
            self._lengths.append(len(self._strings[-1]))
        return number

    def _forget(self) -> None:
        self._numbers: dict[tuple[int, str], int] = {}
        self._strings: list[str] = []
        self._lengths = array("i")
        self._first_number = np.empty(0, dtype=np.int64)
        self._first_word = np.empty(0, dtype=np.uint64)

    def _make_room(self, ids: int) -> None:
        missing = ids - len(self._first_number)
        if missing > 0:
            self._first_number = np.pad(self._first_number, (0, missing), constant_values=-1)
            self._first_word = np.pad(self._first_word, (0, missing))


def _words(whole: str, spans: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Pack the characters of each slice into a word, and say which words hold them all.

    Example:
        >>> words, exact = _words("an 猫", np.array([[0, 2], [3, 4]]))
        >>> hex(words[0]), exact.tolist()
        ('0x6e61', [True, False])
    """
    codes = np.frombuffer(whole.encode("utf-32-le"), dtype=np.uint32)
    letters = np.zeros(len(codes) + _WORD, dtype=np.uint8)
    letters[: len(codes)] = np.where(codes < 256, codes, 0)
    starts, ends = spans.T
    sizes = ends - starts
    from_each = np.ndarray(len(codes) + 1, dtype="<u8", buffer=letters, strides=(1,))
    words = from_each[starts] & _MASKS[np.minimum(sizes, _WORD)]
    # A zero is a character that fits into no byte; U+0000 itself counts as one.
    misfits = np.cumsum(np.concatenate([[False], letters == 0]))
    return words, (sizes <= _WORD) & (misfits[starts] == misfits[ends])
