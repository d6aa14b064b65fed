"""Passes of the teacher over texts, in batches that depend on nothing but the texts.

Which texts share a pass moves the last digits of what it says. So texts are taken a chunk at a
time, and the chunks of a shard, their order and their batches are the same whoever runs it.

Shapes: ``B`` texts of a pass, ``S`` tokens of the longest, ``T`` their tokens but the prompt's, all
in a row, ``D`` width of a state; of attention rows ``k`` layers, ``m`` rows of a text and ``R`` its
tokens but the prompt's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from emo.attention import Capture
from emo.encoder import Encoder, Encoding, pad, pad_arrays
from emo.errors import DataError
from emo.heap import give_back_freed_memory
from emo.outputs import read_json
from emo.store import Store
from emo.tokens import TokenizedText

CHUNK_TEXTS = 1024
"""Texts that are read, tokenized and sorted by length together; bounds the memory."""
BATCH_TEXTS = 32
BATCH_TOKENS = 1 << 11
"""Most texts and most tokens of a pass, padding counted: one rare long text must not decide how
much memory a pass needs. A text that is longer has a pass of its own."""


@dataclass(frozen=True, slots=True)
class TeacherBatch:
    """Texts of one pass.

    Attributes:
        rows: Numbers of the texts in their chunk.
        texts: Their tokens.
        input_ids: ``(B, S)``.
        mask: ``(B, S)`` bool, True on tokens.
        read: ``(B, S)`` bool, tokens but the prompt's.
        text: ``(B, S)`` bool, of these the tokens that are not special.
    """

    rows: list[int]
    texts: list[TokenizedText]
    input_ids: Tensor
    mask: Tensor
    read: Tensor
    text: Tensor


def teacher_identity(teacher: Path, encoder: Encoder, dtype: str) -> dict[str, Any]:
    """Return what everything that a teacher says depends on besides texts and code."""
    return {
        "teacher": read_json(teacher / "model.json"),
        "tokenizer": encoder.tokenizer().digest,
        "dtype": dtype,
    }


def require_teacher(signals: Store, teacher: Path) -> None:
    """Check that a store's signals are those of a teacher: two in one training would be a mixture.

    Args:
        signals: The store.
        teacher: The prepared teacher folder.

    Raises:
        DataError: They are another teacher's.
    """
    if signals.identity["teacher"] != read_json(teacher / "model.json"):
        raise DataError(
            f"{signals.folder}: signals of another teacher than {teacher}; give that teacher, or "
            "make the store again"
        )


def teacher_batches(chunk: Sequence[TokenizedText], encoder: Encoder) -> Iterator[TeacherBatch]:
    """Put the texts of a chunk into batches, long ones first: later ones find their memory there.

    Args:
        chunk: The texts.
        encoder: The teacher, on whose device the tensors are made.
    """
    for rows in batch_rows([len(text.input_ids) for text in chunk]):
        yield _batch([chunk[row] for row in rows], rows, encoder)


def batch_rows(lengths: Sequence[int]) -> list[list[int]]:
    """Return the texts of each batch, by their lengths in tokens.

    >>> batch_rows([5, 3, 4])
    [[0, 2, 1]]
    """
    batches: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lambda row: (-lengths[row], row)):
        if not batches or len(batches[-1]) >= min(
            BATCH_TEXTS, BATCH_TOKENS // lengths[batches[-1][0]]
        ):
            batches.append([])
        batches[-1].append(row)
    return batches


@torch.inference_mode()
def teacher_pass(encoder: Encoder, batch: TeacherBatch, capture: Capture) -> Encoding:
    """Run the teacher over a batch.

    Args:
        encoder: The teacher.
        batch: The batch.
        capture: What to take out of its attention.
    """
    give_back_freed_memory()
    encoding: Encoding = encoder(batch.input_ids, batch.mask, capture)
    return encoding


def importance_capture(batch: TeacherBatch) -> Capture:
    """Ask for the importance of both forms: from text tokens, and from all but the prompt's."""
    return Capture(queries=torch.stack([batch.text, batch.read]))


def importances(batch: TeacherBatch, encoding: Encoding) -> Tensor:
    """Return both forms of importance, 0 at tokens that are none of the form's own.

    Padded query rows of a softmax also sum to 1, so the capture sums over real tokens only: what a
    token receives must not depend on the other texts of its batch.

    Returns:
        ``(2, B, S)``: text tokens among each other, and all tokens but the prompt's.
    """
    return encoding.importance * torch.stack([batch.text, batch.read])


def token_states(batch: TeacherBatch, encoding: Encoding) -> NDArray[np.float32]:
    """Return the ``(T, D)`` states of all tokens but the prompts', text after text."""
    states: NDArray[np.float32] = encoding.states[batch.read].cpu().float().numpy()
    return states


def row_capture(batch: TeacherBatch, layers: Sequence[int]) -> Capture:
    """Ask for all rows of some layers, or for nothing without layers.

    Were only the chosen ones asked for, the last bits of a row would depend on the others.
    """
    if not layers:
        return Capture()
    everywhere = torch.arange(batch.mask.shape[1], device=batch.mask.device)
    return Capture(layers, everywhere.expand(batch.mask.shape).contiguous())


def rows_at(
    batch: TeacherBatch, encoding: Encoding, positions: Sequence[NDArray[np.int64]]
) -> list[NDArray[np.float32]]:
    """Return the ``(k, m, R)`` rows of each text at its positions, where all were captured."""
    attention = encoding.rows.cpu().numpy()
    blocks = []
    for place, (text, chosen) in enumerate(zip(batch.texts, positions, strict=True)):
        read = text.places
        blocks.append(attention[:, place, read[chosen]][:, :, read])
    return blocks


def text_importance(
    batches: Sequence[TeacherBatch], encoder: Encoder, every: bool
) -> list[NDArray[np.float32]]:
    """Ask the teacher for the importance of each token but the prompt's.

    Args:
        batches: All batches of some texts.
        encoder: The teacher.
        every: Whether special tokens count, too.

    Returns:
        One array for each text, in the order of the texts.
    """
    importance = [np.empty(0, dtype=np.float32)] * sum(len(batch.rows) for batch in batches)
    for batch in batches:
        encoding = teacher_pass(encoder, batch, importance_capture(batch))
        values = importances(batch, encoding)[int(every)].cpu().numpy()
        for place, (row, text) in enumerate(zip(batch.rows, batch.texts, strict=True)):
            importance[row] = values[place, text.places]
    return importance


def _batch(texts: list[TokenizedText], rows: list[int], encoder: Encoder) -> TeacherBatch:
    input_ids, mask = pad(texts, encoder.pad_id)
    read = mask & ~pad_arrays([text.prompt for text in texts])
    text = read & ~pad_arrays([text.special for text in texts])
    device = encoder.device
    return TeacherBatch(
        rows, texts, input_ids.to(device), mask.to(device), read.to(device), text.to(device)
    )
