"""Add the attention rows that one student's method asks for to a teacher's signals.

Rows follow the student's map and depth, so they are stored apart from the signals that do not:
once per request, shared by every method, seed and epoch that asks for the same.

Arrays for each text: ``offsets`` of its selected tokens, their ``teacher_position`` and
``student_position``, ``value_offsets`` and ``values``, the rows of its k layers as (k, m, R) where
R counts all teacher tokens but the prompt's.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoConfig

from emo.alignment import content_text, paper_texts, read_alignment, require_origin
from emo.attention import Capture
from emo.encoder import Encoder, load_encoder
from emo.errors import DataError
from emo.outputs import sha256_file
from emo.provenance import code_version
from emo.requests import RowRequest
from emo.row_selection import ContentRanking, Ranking, Selection, TextRanking, select_rows
from emo.store import Store, write_store
from emo.teach import TeacherBatch, importance_capture, importances, teacher_passes
from emo.texts import Text, joined, load_texts
from emo.tokens import TokenizedText

logger = logging.getLogger(__name__)


def layer_pairs(
    request: RowRequest, student_layers: int, teacher_layers: int
) -> list[tuple[int, int]]:
    """Return (student, teacher) layers that are compared, 0-based.

    Unless the request names the pairs, the paper's block map does: with b = N_T // N_S, student
    layer i meets teacher layer i * b + b - 1.

    Raises:
        DataError: The student or the teacher has no such layer.
    """
    if not isinstance(request.layers, int):
        return _existing(request.layers, student_layers, teacher_layers)
    if request.layers > student_layers or student_layers > teacher_layers:
        raise DataError(
            f"cannot compare the last {request.layers} of {student_layers} student layers with "
            f"{teacher_layers} teacher layers; ask for fewer `layers` in the method, or name pairs"
        )
    block = teacher_layers // student_layers
    chosen = request.student_layers(student_layers)
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
        alignment: The request's map.
        out: Folder of the new store.
        dtype: Precision of the pass.
    """
    text_set = load_texts(texts)
    keys, read = text_set.keys, text_set.texts
    signals = Store(store)
    pairs = read_alignment(alignment)
    encoder = load_encoder(teacher, dtype).eval()
    depth = AutoConfig.from_pretrained(student).num_hidden_layers
    layers = [pair[1] for pair in layer_pairs(request, depth, encoder.layers)]
    student_tokenizer = load_encoder(student, device=torch.device("cpu")).tokenizer()
    require_origin(
        pairs.origin,
        alignment,
        method=request.map.method,
        form=request.map.text,
        teacher=encoder.tokenizer().digest,
        student=student_tokenizer.digest,
    )
    if request.map.text == "normalised":
        read = list[Text](paper_texts(read, student_tokenizer))
    tokenized = encoder.tokenizer()(read)
    ranking = _ranking(request, encoder, read, tokenized, signals, keys)
    identity = {
        "signals": signals.digest,
        "alignment": sha256_file(alignment),
        "student_layers": depth,
        "request": request.name,
        "code": code_version("emo.attention_rows"),
    }
    selections = select_rows(request, pairs, len(read), ranking)
    _write(out, identity, keys, encoder, tokenized, selections, layers)


def _ranking(
    request: RowRequest,
    encoder: Encoder,
    texts: Sequence[Text],
    tokenized: Sequence[TokenizedText],
    signals: Store,
    keys: Sequence[str],
) -> Ranking:
    if request.ranking == "content":
        content = encoder.tokenizer()([content_text(joined(text)) for text in texts])
        ranked = [
            _ids(text)[np.argsort(-weight, kind="stable")]
            for text, weight in zip(content, _importance(encoder, content)[1], strict=True)
        ]
        return ContentRanking([_ids(text) for text in tokenized], ranked)
    if request.map.text == "normalised":
        return TextRanking(_importance(encoder, tokenized)[0])
    offsets, stored = signals["offsets"], signals["importance"]
    return TextRanking([stored[offsets[row] : offsets[row + 1]] for row in signals.rows(keys)])


def _importance(
    encoder: Encoder, tokenized: Sequence[TokenizedText]
) -> tuple[list[NDArray[np.float32]], list[NDArray[np.float32]]]:
    """Return each text's importance, over its text tokens and over all but the prompt's."""
    empty = np.empty(0, dtype=np.float32)
    by_text, by_all = [empty] * len(tokenized), [empty] * len(tokenized)
    for batch, encoding in teacher_passes(encoder, tokenized, importance_capture, "ranking"):
        values = importances(batch, encoding).cpu().numpy()
        for place, row in enumerate(batch.rows):
            by_text[row], by_all[row] = values[:, place, tokenized[row].places]
    return by_text, by_all


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

    def capture(batch: TeacherBatch) -> Capture:
        rows = [asked[index] for index in batch.rows]
        positions = torch.zeros(len(rows), max(counts[row] for row in rows), dtype=torch.long)
        for place, row in enumerate(rows):
            columns = kept[row][selections[row].teacher]
            positions[place, : len(columns)] = torch.from_numpy(columns)
        return Capture(layers=layers, positions=positions.to(batch.mask.device))

    with write_store(out, identity, keys) as writer:
        writer.save("offsets", np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        writer.save("teacher_position", np.concatenate([s.teacher for s in selections]))
        writer.save("student_position", np.concatenate([s.student for s in selections]))
        writer.save("value_offsets", value_offsets)
        values = writer.create("values", (int(value_offsets[-1]),), "float32")
        passes = teacher_passes(encoder, [tokenized[r] for r in asked], capture, "attention rows")
        for batch, encoding in passes:
            attention = encoding.rows.cpu().numpy()
            for place, index in enumerate(batch.rows):
                row = asked[index]
                block = attention[:, place, : counts[row]][:, :, kept[row]]
                values[value_offsets[row] : value_offsets[row + 1]] = block.reshape(-1)
    logger.info("stored %d rows of %d layers for %d texts", sum(counts), len(layers), len(asked))


def _existing(
    pairs: Sequence[tuple[int, int]], student_layers: int, teacher_layers: int
) -> list[tuple[int, int]]:
    for student, teacher in pairs:
        if student >= student_layers or teacher >= teacher_layers:
            raise DataError(
                f"layers [{student}, {teacher}]: the student has layers 0 to {student_layers - 1}, "
                f"the teacher 0 to {teacher_layers - 1}; change `layers` in the method"
            )
    return list(pairs)


def _ids(text: TokenizedText) -> NDArray[np.int64]:
    return text.input_ids[text.places]
