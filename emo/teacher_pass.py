"""Passes of the teacher over texts, in batches that depend on nothing but the texts.

Which texts share a pass moves the last digits of what it says. So texts are taken a chunk at a
time, and the chunks of a shard, their order and their batches are the same whoever runs it.

Shapes: ``B`` texts of a pass, ``S`` tokens of the longest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from emo.attention import Capture
from emo.encoder import Encoder, Encoding, pad, pad_arrays
from emo.outputs import read_json
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


def _batch(texts: list[TokenizedText], rows: list[int], encoder: Encoder) -> TeacherBatch:
    input_ids, mask = pad(texts, encoder.pad_id)
    read = mask & ~pad_arrays([text.prompt for text in texts])
    text = read & ~pad_arrays([text.special for text in texts])
    device = encoder.device
    return TeacherBatch(
        rows, texts, input_ids.to(device), mask.to(device), read.to(device), text.to(device)
    )
