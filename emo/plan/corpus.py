"""A text set as a teacher will read it: its tokens, and the batches of every pass.

Batches depend on the lengths of the texts alone, so they are known before any pass. Of a large set
some chunks are counted, evenly spread, and stand for the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from emo.errors import DataError
from emo.plan.stopwatch import Stopwatch
from emo.store import ShardName
from emo.teacher_pass import CHUNK_TEXTS, batch_rows
from emo.texts import TextSet, count_texts, evenly_spread, text_chunks
from emo.tokens import TextTokenizer, TokenizedText

MOST_CHUNKS = 16
"""Chunks whose tokens are counted; of a set of 16 thousand texts, all."""


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """The texts of one pass that will be made.

    Attributes:
        texts: The texts.
        tokenized: Their teacher tokens.
    """

    texts: TextSet
    tokenized: Sequence[TokenizedText]

    @property
    def longest(self) -> int:
        """Tokens of the longest text, prompt included."""
        return max(len(text.input_ids) for text in self.tokenized)

    @property
    def padded(self) -> int:
        """Tokens of the pass, prompt and padding included."""
        return len(self.tokenized) * self.longest


@dataclass(frozen=True, slots=True)
class Corpus:
    """A text set, counted.

    Attributes:
        texts: Texts of the set.
        chunks: Chunks in which all of them will be read.
        counted: Texts of the chunks that were tokenized.
        batches: Batches of these.
        tokenize_seconds: How long their tokens took.
    """

    texts: int
    chunks: int
    counted: int
    batches: Sequence[PlannedBatch]
    tokenize_seconds: float

    def total(self, count: Callable[[TokenizedText], float]) -> float:
        """Return the sum over all texts of what a text counts for."""
        counted = sum(count(text) for batch in self.batches for text in batch.tokenized)
        return self.scaled(counted)

    @property
    def padded(self) -> float:
        """Tokens of all passes."""
        return self.scaled(sum(batch.padded for batch in self.batches))

    def scaled(self, amount: float) -> float:
        """Return how much it is for all texts, given it for the counted ones."""
        return amount * self.texts / self.counted


def read_corpus(path: Path, shards: int, tokenizer: TextTokenizer) -> Corpus:
    """Tokenize a text set, or evenly spread chunks of it.

    Args:
        path: The text set.
        shards: Shards that it will be taught in, which decide where chunks begin.
        tokenizer: The teacher's.

    Raises:
        DataError: The file is missing, lacks a column or holds no text.
    """
    texts = count_texts(path)
    if not texts:
        raise DataError(f"{path}: holds no text; build the text set again")
    parts = [ShardName(shards, number + 1).rows(texts) for number in range(shards)]
    chunks = [rows[start : start + CHUNK_TEXTS] for rows in parts for start in _starts(rows)]
    watch = Stopwatch()
    batches: list[PlannedBatch] = []
    counted = 0
    for place in evenly_spread(len(chunks), MOST_CHUNKS):
        for chunk in text_chunks(path, chunks[place], CHUNK_TEXTS):
            with watch:
                tokenized = tokenizer(chunk.texts)
            counted += len(tokenized)
            batches += _batches(chunk, tokenized)
    return Corpus(texts, len(chunks), counted, batches, watch.seconds)


def spread_order(count: int) -> list[int]:
    """Return the first ``count`` numbers in an order whose every beginning is evenly spread.

    The digits of the numbers in base two are read backwards (van der Corput).

    >>> spread_order(6)
    [0, 4, 2, 1, 5, 3]
    """
    digits = max(count - 1, 0).bit_length()
    return sorted(range(count), key=lambda number: int(f"{number:0{digits}b}"[::-1], 2))


def sample_order(batches: Sequence[PlannedBatch]) -> list[PlannedBatch]:
    """Return batches so that however many are taken, they are of all lengths."""
    by_length = sorted(batches, key=lambda batch: -batch.longest)
    return [by_length[place] for place in spread_order(len(by_length))]


def _starts(rows: range) -> range:
    return range(0, len(rows), CHUNK_TEXTS)


def _batches(chunk: TextSet, tokenized: Sequence[TokenizedText]) -> list[PlannedBatch]:
    return [
        PlannedBatch(
            TextSet([chunk.texts[row] for row in rows], [chunk.keys[row] for row in rows]),
            [tokenized[row] for row in rows],
        )
        for rows in batch_rows([len(text.input_ids) for text in tokenized])
    ]
