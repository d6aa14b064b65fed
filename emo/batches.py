"""Training batches: student tokens joined with what the teacher says of the same texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from emo.alignment import Alignment
from emo.encoder import pad, pad_arrays
from emo.errors import DataError
from emo.store import Store
from emo.store.keys import Keys
from emo.stored_tokens import position_counts
from emo.supervision import Supervision
from emo.token_source import TextRows, TokenSource
from emo.tokens import TokenizedText


@dataclass(frozen=True, slots=True)
class TokenSignals:
    """Teacher token states with the map that carries them to the student.

    Attributes:
        importance: Name of the importance signal, ``importance`` or ``importance_all``.
        alignment: The map; its text numbers are rows of the text set.
    """

    importance: str
    alignment: Alignment


class TrainingTexts(torch.utils.data.Dataset[int]):
    """The numbers of the texts; everything else is joined in :class:`Collator`."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> int:
        return index


class Collator:
    """Joins a batch of text numbers into the tensors that :mod:`emo.methods.base` lists.

    Args:
        tokenized: Student tokens of each text of the set.
        keys: Store key of each text.
        pad_id: Student's padding id.
        signals: The teacher's signals.
        source: Gives token states and attention rows; given when the method asks for either.
        tokens: Given when the method asks for token states.
        row_inputs: Student tokens of the texts whose attention rows are taken, where these are not
            the texts of the set themselves.
        supervision: What is right for each text of a labelled set.

    Attributes:
        pairs_read: Pairs of the texts that were joined so far.
        pairs_dropped: Those of them whose teacher token has no state in the store.

    Raises:
        DataError: A text is not in the store, or the store and the tokens disagree.
    """

    def __init__(
        self,
        tokenized: Sequence[TokenizedText],
        keys: Sequence[str] | Keys,
        pad_id: int,
        signals: Store,
        source: TokenSource | None = None,
        tokens: TokenSignals | None = None,
        row_inputs: Sequence[TokenizedText] | None = None,
        supervision: Supervision | None = None,
    ) -> None:
        self.pairs_read = 0
        self.pairs_dropped = 0
        self._tokenized = tokenized
        self._pad_id = pad_id
        self._signals = signals
        self._signal_rows = signals.rows(keys)
        self._source = source
        self._tokens = tokens
        self._row_inputs = row_inputs
        self._supervision = supervision
        if tokens is not None:
            self._bounds = np.searchsorted(tokens.alignment.text, np.arange(len(keys) + 1))
            self._check_alignment(tokens.alignment)

    def __call__(self, batch: Sequence[int]) -> dict[str, Tensor]:
        """Return the batch's tensors."""
        texts = [self._tokenized[index] for index in batch]
        input_ids, mask = pad(texts, self._pad_id)
        special = pad_arrays([text.special for text in texts])
        prompt = pad_arrays([text.prompt for text in texts])
        vectors = self._signals.stacked("vectors", self._signal_rows[list(batch)])
        tensors = {
            "input_ids": input_ids,
            "mask": mask,
            "student_mask": mask & ~prompt,
            "student_text": mask & ~prompt & ~special,
            "teacher_vectors": torch.from_numpy(vectors),
        }
        if self._supervision is not None:
            tensors |= self._supervision.tensors(batch)
        if self._source is not None:
            taught = self._source.read(batch)
            if self._tokens is not None:
                tensors |= self._token_tensors(batch, texts, taught.states, self._tokens)
            if taught.rows:
                tensors |= self._row_tensors(batch, texts, taught.rows)
            self._source.release()
        # What was read of the memory maps is copied: else memory would grow to their size.
        self._signals.release()
        return tensors

    def _token_tensors(
        self,
        batch: Sequence[int],
        texts: Sequence[TokenizedText],
        states: Sequence[NDArray[np.float32]],
        tokens: TokenSignals,
    ) -> dict[str, Tensor]:
        rows = self._signal_rows[list(batch)]
        special = self._signals.pieces("special", rows)
        importance = self._signals.pieces(tokens.importance, rows)
        pairs = [self._pairs(index, text) for index, text in zip(batch, texts, strict=True)]
        self.pairs_read += sum(map(len, pairs))
        if "kept" in self._signals.names:
            kept = self._signals.pieces("kept", rows)
            special = [flags[chosen] for flags, chosen in zip(special, kept, strict=True)]
            importance = [values[chosen] for values, chosen in zip(importance, kept, strict=True)]
            mapped = [_kept_pairs(both, chosen) for both, chosen in zip(pairs, kept, strict=True)]
            self.pairs_dropped += sum(map(len, pairs)) - sum(map(len, mapped))
            pairs = mapped
        mask = pad_arrays([np.ones(len(flags), dtype=bool) for flags in special])
        return {
            "teacher_states": pad_arrays(states),
            "teacher_importance": pad_arrays(importance),
            "teacher_mask": mask,
            "teacher_text": mask & ~pad_arrays(special),
            "pairs": _numbered(pairs),
        }

    def _pairs(self, index: int, text: TokenizedText) -> NDArray[np.int64]:
        """Return the (teacher position, student column) of each pair of a text."""
        assert self._tokens is not None
        alignment = self._tokens.alignment
        inside = slice(self._bounds[index], self._bounds[index + 1])
        teacher = alignment.teacher_position[inside]
        student = text.places[alignment.student_position[inside]]
        return np.stack([teacher, student], axis=1).astype(np.int64)

    def _row_tensors(
        self, batch: Sequence[int], texts: Sequence[TokenizedText], rows: Sequence[TextRows]
    ) -> dict[str, Tensor]:
        own = self._row_inputs
        read = texts if own is None else [own[index] for index in batch]
        positions = [
            text.places[chosen.student_position] for text, chosen in zip(read, rows, strict=True)
        ]
        tensors = {
            "row_positions": pad_arrays(positions),
            "row_mask": pad_arrays([np.ones(len(p), dtype=bool) for p in positions]),
            "teacher_rows": _pad_blocks([chosen.values for chosen in rows]),
        }
        if own is not None:
            input_ids, mask = pad(read, self._pad_id)
            tensors |= {"row_input_ids": input_ids, "row_input_mask": mask}
        return tensors

    def _check_alignment(self, alignment: Alignment) -> None:
        """An alignment of other texts or another tokenizer would point at any token."""
        texts = len(self._tokenized)
        if alignment.statistics.texts == texts:
            lengths = position_counts(self._tokenized)
            sizes = self._signals.counts("importance")[self._signal_rows]
            if not (
                (alignment.student_position >= lengths[alignment.text]).any()
                or (alignment.teacher_position >= sizes[alignment.text]).any()
            ):
                return
        raise DataError(
            "the alignment does not fit the texts, the student or the teacher store; "
            "remove it and run `emo align` again"
        )


def _kept_pairs(pairs: NDArray[np.int64], kept: NDArray[np.int32]) -> NDArray[np.int64]:
    """Turn teacher positions into columns of kept tokens; pairs of the others are left out."""
    column = np.searchsorted(kept, pairs[:, 0])
    there = np.isin(pairs[:, 0], kept)
    return np.stack([column, pairs[:, 1]], axis=1)[there]


def _numbered(pairs: Sequence[NDArray[np.int64]]) -> Tensor:
    """Join the (P, 2) pairs of each text, its place in the batch put before them."""
    places = np.repeat(np.arange(len(pairs)), [len(both) for both in pairs])
    return torch.from_numpy(np.column_stack([places, np.concatenate(pairs)]))


def _pad_blocks(blocks: Sequence[NDArray[Any]]) -> Tensor:
    """Pad blocks of (k, m, R) with zeros to (k, B, longest m, longest R), both 1 at least.

    A block without rows has no width, whatever its R.
    """
    layers = blocks[0].shape[0]
    most = max(1, *(block.shape[1] for block in blocks))
    width = max((block.shape[2] for block in blocks if block.shape[1]), default=1)
    padded = np.zeros((layers, len(blocks), most, width), dtype=np.float32)  # from float16, too
    for place, block in enumerate(blocks):
        if block.shape[1]:
            padded[:, place, : block.shape[1], : block.shape[2]] = block
    return torch.from_numpy(padded)
