"""Run the teacher once over a text set and store what any student may learn from.

Stored for each text, in the position numbering of :mod:`emo.tokens` (prompt tokens left out):

- ``vectors``: the final embedding;
- ``states``: last hidden states of all tokens;
- ``importance``: attention received in the last layer, over text tokens only (the repaired form);
- ``importance_all``: the same over every token, special ones included (the paper's form);
- ``special``: which tokens the tokenizer added;
- ``offsets``: where each text's tokens start in the arrays above;
- ``vector_centre`` and ``state_centre``: means over the texts and over their text tokens.

Shapes: ``B`` texts of a pass, ``S`` tokens of the longest.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from emo.attention import Capture
from emo.encoder import Encoder, Encoding, load_encoder, pad
from emo.errors import CheckError
from emo.outputs import read_json
from emo.progress import Progress
from emo.provenance import code_version
from emo.store import write_store
from emo.texts import Text, joined, load_texts
from emo.tokens import TokenizedText

logger = logging.getLogger(__name__)

BATCH_SIZE = 32
"""Texts a pass; fixed, so that a store does not depend on who fills it."""


@dataclass(frozen=True, slots=True)
class TeacherBatch:
    """Texts of one pass.

    Attributes:
        rows: Numbers of the texts.
        input_ids: ``(B, S)``.
        mask: ``(B, S)`` bool, True on tokens.
        read: ``(B, S)`` bool, tokens but the prompt's.
        text: ``(B, S)`` bool, of these the tokens that are not special.
    """

    rows: list[int]
    input_ids: Tensor
    mask: Tensor
    read: Tensor
    text: Tensor


def teach(teacher: Path, texts: Path, out: Path, dtype: str = "float32") -> None:
    """Store the teacher's signals for a text set.

    Args:
        teacher: The prepared teacher folder.
        texts: The text set (parquet).
        out: Folder of the store.
        dtype: Precision of the pass; signals are stored in float32.

    Raises:
        CheckError: The teacher gives a vector that is not finite.
    """
    text_set = load_texts(texts)
    encoder = load_encoder(teacher, dtype).eval()
    texts_read = text_set.texts
    tokenized = encoder.tokenizer()(texts_read)
    kept = [text.places for text in tokenized]
    offsets = np.concatenate([[0], np.cumsum([len(places) for places in kept])]).astype(np.int64)
    tokens = int(offsets[-1])
    identity = {
        "teacher": read_json(teacher / "model.json"),
        "dtype": dtype,
        "code": code_version("emo.teach"),
    }
    with write_store(out, identity, text_set.keys) as store:
        vectors = store.create("vectors", (len(tokenized), _vector_width(encoder)), "float32")
        arrays = {
            "states": store.create("states", (tokens, encoder.width), "float32"),
            "importance": store.create("importance", (tokens,), "float32"),
            "importance_all": store.create("importance_all", (tokens,), "float32"),
        }
        special = np.concatenate([text.special[k] for text, k in zip(tokenized, kept, strict=True)])
        for batch, encoding in teacher_passes(encoder, tokenized, importance_capture, "teach"):
            vectors[batch.rows] = _finite_vectors(encoding, texts_read, batch.rows)
            for name, values in _token_signals(batch, encoding).items():
                _write(arrays[name], values, offsets, batch.rows)
        store.save("special", special)
        store.save("offsets", offsets)
        store.save("vector_centre", _centre(vectors, np.ones(len(tokenized), dtype=bool)))
        store.save("state_centre", _centre(arrays["states"], ~special))
    logger.info("stored %d texts, %d tokens in %s", len(tokenized), tokens, out)


def teacher_passes(
    encoder: Encoder,
    tokenized: Sequence[TokenizedText],
    capture: Callable[[TeacherBatch], Capture],
    what: str,
) -> Iterator[tuple[TeacherBatch, Encoding]]:
    """Run the teacher over texts, short ones first.

    Args:
        encoder: The teacher.
        tokenized: The texts.
        capture: Says what to take out of the attention of a batch.
        what: Name of the work, for the progress.

    Yields:
        Each batch, on the teacher's device, with what the teacher says of it.
    """
    order = sorted(range(len(tokenized)), key=lambda row: (len(tokenized[row].input_ids), row))
    with torch.inference_mode(), Progress(len(order), what) as progress:
        for start in range(0, len(order), BATCH_SIZE):
            rows = order[start : start + BATCH_SIZE]
            batch = _batch(tokenized, rows, encoder)
            yield batch, encoder(batch.input_ids, batch.mask, capture(batch))
            progress.advance(len(rows))


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


def _batch(tokenized: Sequence[TokenizedText], rows: list[int], encoder: Encoder) -> TeacherBatch:
    texts = [tokenized[row] for row in rows]
    input_ids, mask = pad(texts, encoder.pad_id)
    read = mask & ~_flags([text.prompt for text in texts], mask)
    text = read & ~_flags([text.special for text in texts], mask)
    device = encoder.device
    return TeacherBatch(
        rows, input_ids.to(device), mask.to(device), read.to(device), text.to(device)
    )


def _flags(flags: Sequence[NDArray[np.bool_]], mask: Tensor) -> Tensor:
    """Pad per-token flags on the right with False."""
    table = torch.zeros_like(mask)
    for row, values in enumerate(flags):
        table[row, : len(values)] = torch.from_numpy(values)
    return table


def _token_signals(batch: TeacherBatch, encoding: Encoding) -> dict[str, NDArray[np.float32]]:
    """Return the signals of all read tokens of a batch, text after text."""
    by_text, by_all = importances(batch, encoding)
    signals = {"states": encoding.states, "importance": by_text, "importance_all": by_all}
    return {name: _array(values[batch.read]) for name, values in signals.items()}


def _write(
    array: NDArray[np.float32],
    values: NDArray[np.float32],
    offsets: NDArray[np.int64],
    rows: Sequence[int],
) -> None:
    start = 0
    for row in rows:
        size = offsets[row + 1] - offsets[row]
        array[offsets[row] : offsets[row + 1]] = values[start : start + size]
        start += size


def _finite_vectors(
    encoding: Encoding, texts: Sequence[Text], rows: Sequence[int]
) -> NDArray[np.float32]:
    vectors = _array(encoding.vectors)
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        row = rows[int(np.argmin(finite))]
        raise CheckError(
            f"the teacher's vector of text {row} ({joined(texts[row])[:40]!r}) is not finite; "
            "set the teacher's `dtype` to float32"
        )
    return vectors


def _array(values: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = values.cpu().float().numpy()
    return array


def _vector_width(encoder: Encoder) -> int:
    width = encoder.model.get_embedding_dimension()
    return int(width) if width is not None else encoder.width


def _centre(array: NDArray[Any], rows: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the mean of the chosen rows, summed in float64 a block at a time."""
    total = np.zeros(array.shape[1])
    for start in range(0, len(array), 1 << 16):
        block = slice(start, start + (1 << 16))
        total += array[block][rows[block]].sum(axis=0, dtype=np.float64)
    return (total / max(int(rows.sum()), 1)).astype(np.float32)
