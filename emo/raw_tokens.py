"""What a tokenizer says of a block of texts, flat, and the characters that it speaks of.

Shapes: ``T`` texts of a block, ``N`` tokens of all of them, ``C`` characters of all of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase
from transformers.tokenization_utils_base import TruncationStrategy
from transformers.utils.generic import PaddingStrategy

Read = str | tuple[str, str]
"""What a model reads, prompt included: one string, or the two of a pair."""

# Whether a character is whitespace, for all up to the last one that is; the others share the end.
_SPACE = np.array([chr(code).isspace() for code in range(0x3001)] + [False])


@dataclass(frozen=True, slots=True)
class RawTokens:
    """The tokens of a block, one text behind the other.

    Attributes:
        input_ids: Ids, int64 ``(N,)``.
        special: True on tokens the tokenizer added, bool ``(N,)``.
        starts: First character of each token in its own read string, a pair's strings joined by
            one character, int64 ``(N,)``.
        ends: Character behind the last one, int64 ``(N,)``.
        counts: Tokens of each text, int64 ``(T,)``.
    """

    input_ids: NDArray[np.int64]
    special: NDArray[np.bool_]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    counts: NDArray[np.int64]


class BlockText:
    """The read strings of a block as one, to move the ends of spans.

    Attributes:
        starts: Where each text starts in the whole, and where the last one ends, ``(T + 1,)``.
    """

    def __init__(self, reads: Sequence[str]) -> None:
        self._whole = "".join(reads)
        self.starts = np.concatenate([[0], np.cumsum([len(read) for read in reads])])
        codes = np.frombuffer(self._whole.encode("utf-32-le"), dtype=np.uint32)
        space = _SPACE[np.minimum(codes, len(_SPACE) - 1)]
        size = len(codes)
        # The next character at or behind each place that is no space, and the last one before it.
        here = np.arange(size + 1)
        behind = here.copy()
        behind[:-1][space] = size
        self._next = np.minimum.accumulate(behind[::-1])[::-1]
        before = here.copy()
        before[1:][space] = 0
        self._last = np.maximum.accumulate(before)

    def stripped(
        self, starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Take whitespace off both ends of spans, since only some tokenizers include it.

        Args:
            starts: First characters in the whole, ``(N,)``.
            ends: Characters behind the last ones, ``(N,)``.
        """
        starts = np.minimum(self._next[starts], ends)
        return starts, np.maximum(self._last[ends], starts)

    def end_of(self, surface: str, start: int, limit: int) -> int:
        """Find where a token ends of which only the start is known, from its characters.

        Returns:
            The start itself when the characters do not stand there, before ``limit``.
        """
        begin = int(self._next[start])
        found = bool(surface) and self._whole.startswith(surface, begin, limit)
        return begin + len(surface) if found else start


def encode_fast(
    tokenizer: PreTrainedTokenizerBase, reads: Sequence[Read], max_length: int
) -> RawTokens:
    """Tokenize a block as ``tokenizer(reads, truncation=True)`` does, without building its lists.

    Args:
        tokenizer: A fast tokenizer.
        reads: Strings with prompt, or pairs.
        max_length: Longest sequence, special tokens counted.
    """
    tokenizer.set_truncation_and_padding(
        padding_strategy=PaddingStrategy.DO_NOT_PAD,
        truncation_strategy=TruncationStrategy.LONGEST_FIRST,
        max_length=max_length,
        stride=0,
        pad_to_multiple_of=None,
        padding_side=None,
    )
    backend = tokenizer.backend_tokenizer
    backend.encode_special_tokens = tokenizer.split_special_tokens
    encodings = backend.encode_batch(list(reads))
    counts = np.array([len(encoding) for encoding in encodings], dtype=np.int64)
    total = int(counts.sum())
    offsets = _flat(
        chain.from_iterable(chain.from_iterable(encoding.offsets for encoding in encodings)),
        2 * total,
    ).reshape(-1, 2)
    for row, read in enumerate(reads):
        if not isinstance(read, str):
            second = np.array([number == 1 for number in encodings[row].sequence_ids], dtype=bool)
            first_token = int(counts[:row].sum())
            offsets[first_token : first_token + len(second)][second] += len(read[0]) + 1
    return RawTokens(
        input_ids=_flat(chain.from_iterable(encoding.ids for encoding in encodings), total),
        special=_flat(
            chain.from_iterable(encoding.special_tokens_mask for encoding in encodings), total
        ).astype(bool),
        starts=offsets[:, 0],
        ends=offsets[:, 1],
        counts=counts,
    )


def _flat(numbers: Iterable[int], count: int) -> NDArray[np.int64]:
    return np.fromiter(numbers, dtype=np.int64, count=count)
