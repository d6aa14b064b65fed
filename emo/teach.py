"""Run the teacher once over a text set and store what any student may learn from.

Stored for each text, in the position numbering of :mod:`emo.tokens` (prompt tokens left out):

- ``vectors``: the final embedding;
- ``states``: last hidden states of all tokens;
- ``importance``: attention received in the last layer, over text tokens only (the repaired form);
- ``importance_all``: the same over every token, special ones included (the paper's form);
- ``special``: which tokens the tokenizer added;
- ``offsets``: where each text's tokens start in the arrays above;
- ``vector_centre`` and ``state_centre``: means over the texts and over their text tokens.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from emo.encoder import Encoder, Encoding, load_encoder, pad
from emo.losses import attention_importance
from emo.outputs import read_json
from emo.progress import Progress
from emo.provenance import code_version
from emo.store import write_store
from emo.texts import load_texts
from emo.tokens import TokenizedText

logger = logging.getLogger(__name__)

BATCH_SIZE = 32
"""Texts a pass; fixed, so that a store does not depend on who fills it."""


def teach(teacher: Path, texts: Path, out: Path, dtype: str = "float32") -> None:
    """Store the teacher's signals for a text set.

    Args:
        teacher: The prepared teacher folder.
        texts: The text set (parquet).
        out: Folder of the store.
        dtype: Precision of the pass; signals are stored in float32.
    """
    table = load_texts(texts)
    encoder = load_encoder(teacher, dtype).eval()
    tokenized = encoder.tokenizer()(list(table["text"]))
    kept = [text.places for text in tokenized]
    offsets = np.concatenate([[0], np.cumsum([len(places) for places in kept])]).astype(np.int64)
    identity = {
        "teacher": read_json(teacher / "model.json"),
        "dtype": dtype,
        "code": code_version("emo.teach"),
    }
    with write_store(out, identity, list(table["key"])) as store:
        vectors = store.create("vectors", (len(tokenized), _vector_width(encoder)), "float32")
        states = store.create("states", (int(offsets[-1]), encoder.width), "float32")
        importance = store.create("importance", (int(offsets[-1]),), "float32")
        importance_all = store.create("importance_all", (int(offsets[-1]),), "float32")
        special = np.concatenate(
            [np.array(text.special)[k] for text, k in zip(tokenized, kept, strict=True)]
        )
        for rows, encoding in teacher_passes(encoder, tokenized, [encoder.layers - 1], "teach"):
            by_text, by_all = _importances(encoding, [tokenized[row] for row in rows])
            vectors[rows] = encoding.vectors.float().cpu().numpy()
            for place, row in enumerate(rows):
                inside = slice(offsets[row], offsets[row + 1])
                tokens = kept[row]
                states[inside] = encoding.states[place, tokens].float().cpu().numpy()
                importance[inside] = by_text[place, tokens]
                importance_all[inside] = by_all[place, tokens]
        store.save("special", special)
        store.save("offsets", offsets)
        store.save("vector_centre", _centre(vectors, np.ones(len(tokenized), dtype=bool)))
        store.save("state_centre", _centre(states, ~special))
    logger.info("stored %d texts, %d tokens in %s", len(tokenized), int(offsets[-1]), out)


def teacher_passes(
    encoder: Encoder, tokenized: Sequence[TokenizedText], layers: Sequence[int], what: str
) -> Iterator[tuple[list[int], Encoding]]:
    """Run the teacher over texts, short ones first, and yield rows with their encoding."""
    order = sorted(range(len(tokenized)), key=lambda row: (len(tokenized[row].input_ids), row))
    with torch.inference_mode(), Progress(len(order), what) as progress:
        for start in range(0, len(order), BATCH_SIZE):
            rows = order[start : start + BATCH_SIZE]
            input_ids, mask = pad([tokenized[row] for row in rows], encoder.pad_id)
            yield rows, encoder(input_ids.to(encoder.device), mask.to(encoder.device), layers)
            progress.advance(len(rows))


def all_token_importance(encoding: Encoding, texts: Sequence[TokenizedText]) -> NDArray[Any]:
    """Return the paper's importance: last layer asked for, every token but the prompt's."""
    return _importances(encoding, texts)[1]


def _importances(
    encoding: Encoding, texts: Sequence[TokenizedText]
) -> tuple[NDArray[Any], NDArray[Any]]:
    read = _flags([text.prompt for text in texts], encoding.mask, invert=True)
    text_only = read & _flags([text.special for text in texts], encoding.mask, invert=True)
    attention = encoding.attention[-1].float()
    return (
        attention_importance(attention, text_only, text_only).cpu().numpy(),
        attention_importance(attention, read, read).cpu().numpy(),
    )


def _flags(flags: Sequence[Sequence[bool]], mask: torch.Tensor, *, invert: bool) -> torch.Tensor:
    """Pad per-token flags to the batch; padding is False whichever way the flags are read."""
    table = torch.zeros_like(mask)
    for row, values in enumerate(flags):
        table[row, : len(values)] = torch.tensor(values, device=mask.device)
    return (~table if invert else table) & mask


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
