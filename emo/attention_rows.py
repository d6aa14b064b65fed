"""Add the attention rows that one student's method asks for to a teacher's signals.

Rows follow the student's map and depth, so they are stored apart from the signals that do not:
once per request, shared by every method, seed and epoch that asks for the same.

Arrays for each text: ``offsets`` of its selected tokens, their ``teacher_position`` and
``student_position``, ``value_offsets`` and ``values``, the rows of its k layers as (k, m, R) where
R counts all teacher tokens but the prompt's.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoConfig

from emo.alignment import Alignment, content_text, paper_text, read_alignment
from emo.attention import Capture
from emo.encoder import Encoder, load_encoder
from emo.errors import DataError
from emo.outputs import sha256_file
from emo.provenance import code_version
from emo.requests import RowRequest
from emo.store import Store, write_store
from emo.teach import TeacherBatch, importance_capture, importances, teacher_passes
from emo.texts import load_texts
from emo.tokens import TokenizedText

logger = logging.getLogger(__name__)

PAPER_SHARE = 3
"""The paper keeps one in three mapped token types."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected positions of one text, teacher and student side."""

    teacher: NDArray[np.int64]
    student: NDArray[np.int64]


def layer_pairs(student_layers: int, teacher_layers: int, last: int) -> list[tuple[int, int]]:
    """Return (student, teacher) layers that are compared, 0-based, by the paper's block map.

    With b = N_T // N_S, student layer i meets teacher layer i * b + b - 1.

    Raises:
        DataError: The student has fewer layers than asked for, or more than the teacher.

    >>> layer_pairs(student_layers=3, teacher_layers=12, last=2)
    [(1, 7), (2, 11)]
    """
    if last > student_layers or student_layers > teacher_layers:
        raise DataError(
            f"cannot compare the last {last} of {student_layers} student layers with "
            f"{teacher_layers} teacher layers; ask for fewer `layers` in the method"
        )
    block = teacher_layers // student_layers
    chosen = range(student_layers - last, student_layers)
    return [(layer, layer * block + block - 1) for layer in chosen]


def store_rows(
    request: RowRequest,
    *,
    teacher: Path,
    student: Path,
    texts: Path,
    store: Path,
    alignment: Path,
    out: Path,
    dtype: str = "float32",
) -> None:
    """Store the attention rows of a request.

    Args:
        request: What is asked for.
        teacher: The prepared teacher folder.
        student: The prepared student folder.
        texts: The text set.
        store: The teacher's signals for it.
        alignment: The map of the request's form (``mined`` or ``mined-types``).
        out: Folder of the new store.
        dtype: Precision of the pass.
    """
    table = load_texts(texts)
    signals = Store(store)
    pairs = read_alignment(alignment)
    encoder = load_encoder(teacher, dtype).eval()
    depth = AutoConfig.from_pretrained(student).num_hidden_layers
    layers = [pair[1] for pair in layer_pairs(depth, encoder.layers, request.layers)]
    read = list(table["text"])
    if request.form == "emo-paper":
        student_tokenizer = load_encoder(student, device=torch.device("cpu")).tokenizer()
        read = [paper_text(text, student_tokenizer) for text in read]
        selections = _paper_selections(encoder, read, pairs)
    else:
        rows = signals.rows(list(table["key"]))
        selections = _selections(pairs, signals, rows, request.rows or len(read))
    identity = {
        "signals": signals.digest,
        "alignment": sha256_file(alignment),
        "student_layers": depth,
        "request": [request.form, request.layers, request.rows],
        "code": code_version("emo.attention_rows"),
    }
    _write(
        out,
        identity,
        list(table["key"]),
        encoder,
        encoder.tokenizer()(read),
        selections,
        layers,
    )


def _write(
    out: Path,
    identity: dict[str, Any],
    keys: Sequence[str],
    encoder: Encoder,
    tokenized: Sequence[TokenizedText],
    selections: Sequence[Selection],
    layers: Sequence[int],
) -> None:
    kept = [text.places for text in tokenized]
    sizes = [len(s.teacher) * len(k) for s, k in zip(selections, kept, strict=True)]
    value_offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64) * len(layers)
    counts = [len(selection.teacher) for selection in selections]
    asked = [row for row, count in enumerate(counts) if count]
    with write_store(out, identity, keys) as writer:
        writer.save("offsets", np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        writer.save("teacher_position", np.concatenate([s.teacher for s in selections]))
        writer.save("student_position", np.concatenate([s.student for s in selections]))
        writer.save("value_offsets", value_offsets)
        values = writer.create("values", (int(value_offsets[-1]),), "float32")

        def capture(batch: TeacherBatch) -> Capture:
            positions = [kept[asked[i]][selections[asked[i]].teacher] for i in batch.rows]
            table = torch.zeros(len(positions), max(map(len, positions)), dtype=torch.int64)
            for place, chosen in enumerate(positions):
                table[place, : len(chosen)] = torch.from_numpy(chosen)
            return Capture(layers, table.to(batch.mask.device))

        passes = teacher_passes(
            encoder, [tokenized[row] for row in asked], capture, "attention rows"
        )
        for batch, encoding in passes:
            for place, index in enumerate(batch.rows):
                row = asked[index]
                count = len(selections[row].teacher)
                block = encoding.rows[:, place, :count][:, :, kept[row]].cpu().numpy()
                values[value_offsets[row] : value_offsets[row + 1]] = block.reshape(-1)
    logger.info("stored %d rows of %d layers for %d texts", sum(counts), len(layers), len(asked))


def _selections(
    pairs: Alignment, signals: Store, rows: NDArray[np.int64], most: int
) -> list[Selection]:
    """Select the most important mapped pairs of each text, always paired."""
    bounds = np.searchsorted(pairs.text, np.arange(len(rows) + 1))
    offsets, importance = signals["offsets"], signals["importance"]
    selections = []
    for text, row in enumerate(rows):
        inside = slice(bounds[text], bounds[text + 1])
        teacher = pairs.teacher_position[inside].astype(np.int64)
        student = pairs.student_position[inside].astype(np.int64)
        weight = importance[offsets[row] + teacher]
        best = np.lexsort((teacher, -weight))[:most]
        selections.append(Selection(teacher[best], student[best]))
    return selections


def _paper_selections(encoder: Encoder, texts: Sequence[str], pairs: Alignment) -> list[Selection]:
    """Select as the authors' code does; the two sides are sorted apart and not re-paired."""
    bounds = np.searchsorted(pairs.text, np.arange(len(texts) + 1))
    most = np.diff(bounds) // PAPER_SHARE
    chosen = _paper_tokens(encoder, [content_text(text) for text in texts], most)
    tokenized = encoder.tokenizer()(texts)
    selections = []
    for text, tokens in enumerate(chosen):
        inside = slice(bounds[text], bounds[text + 1])
        teacher = pairs.teacher_position[inside].astype(np.int64)
        student = pairs.student_position[inside].astype(np.int64)
        ids = _ids_without_prompt(tokenized[text])[teacher]
        keep = np.isin(ids, sorted(tokens))
        selections.append(Selection(np.sort(teacher[keep]), np.sort(student[keep])))
    return selections


def _paper_tokens(
    encoder: Encoder, texts: Sequence[str], most: NDArray[np.int64]
) -> list[set[int]]:
    """Return the ids of the most important tokens of each stop-word-free text."""
    tokenized = encoder.tokenizer()(texts)
    chosen: list[set[int]] = [set() for _ in texts]
    for batch, encoding in teacher_passes(encoder, tokenized, importance_capture, "ranking"):
        importance = importances(batch, encoding)[1].cpu().numpy()
        for place, row in enumerate(batch.rows):
            weight = importance[place, tokenized[row].places]
            best = np.argsort(-weight, kind="stable")[: most[row]]
            chosen[row] = set(_ids_without_prompt(tokenized[row])[best].tolist())
    return chosen


def _ids_without_prompt(text: TokenizedText) -> NDArray[np.int64]:
    return text.input_ids[text.places]
