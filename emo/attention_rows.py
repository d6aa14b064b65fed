"""Add the attention rows that one student's method asks for to a teacher's signals.

Rows follow the student's map and depth, so they are stored apart from the signals that do not:
once per request, shared by every method, seed and epoch that asks for the same. What another
student's rows hold already is copied from there, see :mod:`emo.row_reuse`.

Arrays for each text: ``offsets`` of its selected tokens, their ``teacher_position`` and
``student_position``, ``value_offsets`` and ``values``, the rows of its k layers as (k, m, R) where
R counts all teacher tokens but the prompt's; with a ranking pass of its own also what it gave.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig

from emo.alignment import read_alignment, require_origin
from emo.encoder import Encoder, device_name, load_encoder
from emo.layer_pairs import layer_pairs
from emo.outputs import exclusive, sha256_file
from emo.progress import Progress
from emo.provenance import code_version
from emo.requests import RowRequest
from emo.row_job import RowJob, RowPrecision
from emo.row_reuse import RowPool
from emo.store import TOKENS, Shard, ShardName, Store, write_shard
from emo.teacher_pass import CHUNK_TEXTS, require_teacher, teacher_identity
from emo.texts import count_texts, text_chunks

logger = logging.getLogger(__name__)


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
    precision: RowPrecision = "float32",
    reuse: Path | None = None,
    encoder: Encoder | None = None,
) -> None:
    """Store the attention rows of a request for a shard of a text set.

    Args:
        request: What is asked for.
        teacher: The prepared teacher folder.
        student: The prepared student folder.
        texts: The text set.
        store: The file of the store of the teacher's signals.
        alignment: The request's map.
        out: Folder of the shard; its name says which it is, such as ``1-of-2``.
        dtype: Precision of the pass.
        precision: Type in which rows are stored.
        reuse: Folder of the teacher's results, where rows of other students and requests stand as
            ``{student}/rows/{texts}/{request}/{shard}``; None computes everything.
        encoder: The teacher, where it is loaded already.
    """
    rows = ShardName.parse(out.name).rows(count_texts(texts))
    signals = Store(store)
    require_teacher(signals, teacher)
    if encoder is None:
        encoder = load_encoder(teacher, dtype).eval()
    depth = AutoConfig.from_pretrained(student).num_hidden_layers
    layers = [pair[1] for pair in layer_pairs(request, depth, encoder.layers)]
    student_tokenizer = load_encoder(student, device=torch.device("cpu")).tokenizer()
    source = teacher_identity(teacher, encoder, dtype) | {
        "values": precision,
        "code": code_version("emo.attention_rows"),
    }
    identity = source | {
        "signals": signals.digest,
        "alignment": sha256_file(alignment),
        "student_layers": depth,
        "student_tokenizer": student_tokenizer.digest,
        "request": request.name,
        "layers": layers,
    }
    normaliser = student_tokenizer if request.map.text == "normalised" else None
    totals: dict[str, Any] = {}
    device = device_name(encoder.device)
    with _pool(reuse, texts, out) as pool, write_shard(out, identity, totals, device) as writer:
        job = RowJob(request, encoder, layers, source, signals, pool, writer, precision, normaliser)
        pairs = read_alignment(alignment, rows)
        require_origin(
            pairs.origin,
            alignment,
            method=request.map.method,
            form=request.map.text,
            teacher=source["tokenizer"],
            student=student_tokenizer.digest,
        )
        with Progress(len(rows), "attention rows") as progress:
            first = rows.start
            for chunk in text_chunks(texts, rows, CHUNK_TEXTS):
                job.run(chunk, range(first, first + len(chunk.keys)), pairs, progress)
                first += len(chunk.keys)
        totals |= {"rows": job.rows, TOKENS: job.tokens}
    logger.info("%d rows, teacher passes: %d", job.rows, job.passes)
    logger.info("%s", Shard(out))


@contextmanager
def _pool(reuse: Path | None, texts: Path, out: Path) -> Iterator[RowPool]:
    """Open the rows that are there; who asks for the same at this moment waits, and finds them."""
    if reuse is None:
        yield RowPool([])
        return
    with exclusive(reuse / f".rows-{texts.stem}-{out.name}", f"attention rows of {texts.stem}"):
        folders = reuse.glob(f"*/rows/{texts.stem}/*/[0-9]*-of-*")
        yield RowPool(sorted(folder for folder in folders if folder.absolute() != out.absolute()))
