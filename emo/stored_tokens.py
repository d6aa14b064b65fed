"""A model's tokens of a text set, on disk: a training reads a few at a time and holds none."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from emo.store import Shard, write_shard
from emo.store.keys import Keys
from emo.texts import Text, count_texts, text_chunks
from emo.tokens import TEXTS_PER_CALL, TextTokenizer, TokenizedText

RELEASE_AFTER = 4096
"""Texts read between two releases of the memory that they were read through."""


class StoredTokens(Sequence[TokenizedText]):
    """Tokens of each text of a set, read when they are asked for.

    Args:
        folder: What :func:`store_tokens` wrote.
    """

    def __init__(self, folder: Path) -> None:
        self._shard = Shard(folder)
        self._read = 0

    def __len__(self) -> int:
        return self._shard.texts

    @overload
    def __getitem__(self, index: int) -> TokenizedText: ...
    @overload
    def __getitem__(self, index: slice) -> list[TokenizedText]: ...
    def __getitem__(self, index: int | slice) -> TokenizedText | list[TokenizedText]:
        """Return the tokens of a text, or of several."""
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)  # ends an iteration
        self._read += 1
        if self._read % RELEASE_AFTER == 0:
            self._shard.release()
        piece = self._shard.piece
        return TokenizedText(
            piece("input_ids", index).astype(np.int64),
            piece("prompt", index).copy(),
            piece("special", index).copy(),
            piece("spans", index).copy(),
        )

    @cached_property
    def keys(self) -> Keys:
        """Packed keys of the texts, in the order of the set."""
        return self._shard.keys()

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """Number of positions of each text: tokens but the prompt's."""
        counts: NDArray[np.int64] = self._shard.array("positions")
        return counts


def store_tokens(
    folder: Path, chunks: Iterable[tuple[Sequence[str], Sequence[TokenizedText]]]
) -> StoredTokens:
    """Write the tokens of a text set, unless they are there already.

    Args:
        folder: Where; its path names all that the tokens depend on.
        chunks: Keys and tokens of the texts, some at a time, in the order of the set.
    """
    if folder.is_dir():  # it appeared whole
        return StoredTokens(folder)
    with write_shard(folder, {}, {}) as writer:
        writer.create("positions", "int64")
        for name, dtype, tail in (
            ("input_ids", "int32", ()),
            ("prompt", "bool", ()),
            ("special", "bool", ()),
            ("spans", "int32", (2,)),
        ):
            writer.create(name, dtype, tail, offsets="offsets")
        for keys, texts in chunks:
            writer.append_keys(keys)
            writer.append_counts("offsets", [len(text.input_ids) for text in texts])
            writer.append("positions", np.array([len(text.places) for text in texts]))
            writer.append(
                "input_ids", np.concatenate([text.input_ids for text in texts]).astype(np.int32)
            )
            for name in ("prompt", "special", "spans"):
                writer.append(name, np.concatenate([getattr(text, name) for text in texts]))
    return StoredTokens(folder)


def tokens_of(
    texts: Path,
    tokenizer: TextTokenizer,
    folder: Path,
    rewrite: Callable[[list[Text]], list[Text]] | None = None,
) -> StoredTokens:
    """Tokenize a text set onto the disk, or find its tokens there.

    Args:
        texts: The text set.
        tokenizer: The tokenizer.
        folder: Where, see :func:`store_tokens`.
        rewrite: Makes of the texts those that are tokenized; they are read as they are when None.
    """

    def chunks() -> Iterator[tuple[Sequence[str], Sequence[TokenizedText]]]:
        for chunk in text_chunks(texts, range(count_texts(texts)), TEXTS_PER_CALL):
            yield chunk.keys, tokenizer(chunk.texts if rewrite is None else rewrite(chunk.texts))

    return store_tokens(folder, chunks())


def position_counts(texts: Sequence[TokenizedText]) -> NDArray[np.int64]:
    """Return how many positions each text has, which stored tokens know without being read."""
    if isinstance(texts, StoredTokens):
        return texts.positions
    return np.array([len(text.places) for text in texts])
