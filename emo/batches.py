"""Training batches: student tokens joined with what the teacher store says of the same texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from emo.alignment import Alignment
from emo.encoder import pad
from emo.errors import DataError
from emo.store import Store
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


@dataclass(frozen=True, slots=True)
class RowSignals:
    """Attention rows, and what the student reads to give its own.

    Attributes:
        store: The rows store.
        layers: Layers stored for each row.
        inputs: Student tokens of the texts whose rows were taken, where these are not the texts of
            the set themselves.
    """

    store: Store
    layers: int
    inputs: Sequence[TokenizedText] | None = None


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
        tokens: Given when the method asks for token signals.
        rows: Given when the method asks for attention rows.

    Raises:
        DataError: A text is not in a store, or a store and the tokens disagree.
    """

    def __init__(
        self,
        tokenized: Sequence[TokenizedText],
        keys: Sequence[str],
        pad_id: int,
        signals: Store,
        tokens: TokenSignals | None = None,
        rows: RowSignals | None = None,
    ) -> None:
        self._tokenized = tokenized
        self._read = [text.places for text in tokenized]
        self._pad_id = pad_id
        self._signals = signals
        self._signal_rows = signals.rows(keys)
        self._tokens = tokens
        self._rows = rows
        if tokens is not None:
            self._bounds = np.searchsorted(tokens.alignment.text, np.arange(len(keys) + 1))
            self._check_alignment(tokens.alignment)
        if rows is not None:
            self._row_rows = rows.store.rows(keys)

    def __call__(self, batch: Sequence[int]) -> dict[str, Tensor]:
        """Return the batch's tensors."""
        texts = [self._tokenized[index] for index in batch]
        input_ids, mask = pad(texts, self._pad_id)
        special = _pad_arrays([text.special for text in texts])
        prompt = _pad_arrays([text.prompt for text in texts])
        tensors = {
            "input_ids": input_ids,
            "mask": mask,
            "student_mask": mask & ~prompt,
            "student_text": mask & ~prompt & ~special,
            "teacher_vectors": torch.from_numpy(
                self._signals["vectors"][self._signal_rows[list(batch)]]
            ),
        }
        if self._tokens is not None:
            tensors |= self._token_tensors(batch, self._tokens)
        if self._rows is not None:
            tensors |= self._row_tensors(batch, self._rows)
        return tensors

    def _token_tensors(self, batch: Sequence[int], tokens: TokenSignals) -> dict[str, Tensor]:
        offsets = self._signals["offsets"]
        places = [slice(offsets[row], offsets[row + 1]) for row in self._signal_rows[list(batch)]]
        special = _pad_arrays([self._signals["special"][place] for place in places])
        mask = _pad_arrays([np.ones(place.stop - place.start, dtype=bool) for place in places])
        return {
            "teacher_states": _pad_arrays([self._signals["states"][place] for place in places]),
            "teacher_importance": _pad_arrays(
                [self._signals[tokens.importance][place] for place in places]
            ),
            "teacher_mask": mask,
            "teacher_text": mask & ~special,
            "pairs": torch.from_numpy(self._pairs(batch, tokens.alignment)),
        }

    def _pairs(self, batch: Sequence[int], alignment: Alignment) -> NDArray[np.int64]:
        blocks = []
        for place, index in enumerate(batch):
            inside = slice(self._bounds[index], self._bounds[index + 1])
            teacher = alignment.teacher_position[inside]
            student = self._read[index][alignment.student_position[inside]]
            blocks.append(np.stack([np.full_like(teacher, place), teacher, student], axis=1))
        return np.concatenate(blocks).astype(np.int64)

    def _row_tensors(self, batch: Sequence[int], rows: RowSignals) -> dict[str, Tensor]:
        offsets, value_offsets = rows.store["offsets"], rows.store["value_offsets"]
        inputs = self._tokenized if rows.inputs is None else rows.inputs
        positions, values = [], []
        for index in batch:
            row = self._row_rows[index]
            selected = rows.store["student_position"][offsets[row] : offsets[row + 1]]
            block = rows.store["values"][value_offsets[row] : value_offsets[row + 1]]
            positions.append(inputs[index].places[selected])
            width = len(block) // max(rows.layers * len(selected), 1)
            values.append(np.asarray(block).reshape(rows.layers, len(selected), width))
        tensors = {
            "row_positions": _pad_arrays(positions),
            "row_mask": _pad_arrays([np.ones(len(p), dtype=bool) for p in positions]),
            "teacher_rows": _pad_blocks(values),
        }
        if rows.inputs is not None:
            input_ids, mask = pad([inputs[index] for index in batch], self._pad_id)
            tensors |= {"row_input_ids": input_ids, "row_input_mask": mask}
        return tensors

    def _check_alignment(self, alignment: Alignment) -> None:
        """An alignment of other texts or another tokenizer would point at any token."""
        lengths = np.array([len(read) for read in self._read])
        sizes = np.diff(self._signals["offsets"])[self._signal_rows]
        if (
            alignment.statistics.texts != len(lengths)
            or (alignment.student_position >= lengths[alignment.text]).any()
            or (alignment.teacher_position >= sizes[alignment.text]).any()
        ):
            raise DataError(
                "the alignment does not fit the texts, the student or the teacher store; "
                "remove it and run `emo align` again"
            )


def _pad_arrays(arrays: Sequence[NDArray[Any]]) -> Tensor:
    """Pad arrays of (length, ...) with zeros to (B, longest, ...), longest being 1 at least."""
    longest = max(1, *(len(array) for array in arrays))
    padded = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), dtype=arrays[0].dtype)
    for row, array in enumerate(arrays):
        padded[row, : len(array)] = array
    return torch.from_numpy(padded)


def _pad_blocks(blocks: Sequence[NDArray[Any]]) -> Tensor:
    """Pad blocks of (k, m, R) with zeros to (k, B, longest m, longest R), both 1 at least."""
    layers = blocks[0].shape[0]
    most = max(1, *(block.shape[1] for block in blocks))
    width = max(1, *(block.shape[2] for block in blocks))
    padded = np.zeros((layers, len(blocks), most, width), dtype=np.float32)
    for place, block in enumerate(blocks):
        padded[:, place, : block.shape[1], : block.shape[2]] = block
    return torch.from_numpy(padded)
