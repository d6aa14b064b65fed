"""Run the teacher over a shard of a text set and store what any student may learn from.

Stored for each text, in the position numbering of :mod:`emo.tokens` (prompt tokens left out):

- ``vectors``: the final embedding;
- ``states``: last hidden states of all tokens, or of the ``kept`` ones, in the precision that was
  asked for, see :class:`emo.store.StateCodec`; for int8 with ``state_scale``; none where trainings
  ask the teacher itself (``states: online``);
- ``importance``: attention received in the last layer, over text tokens only (the repaired form);
- ``importance_all``: the same over every token, special ones included (the paper's form);
- ``special``: which tokens the tokenizer added;
- ``offsets``: where each text's tokens start in the arrays above.

A gathered store also has ``vector_centre`` and ``state_centre``, means over the texts and over
their text tokens.
"""

import logging
from pathlib import Path
from typing import Any

from emo.config_store import StoreSettings
from emo.encoder import Encoder, device_name, load_encoder
from emo.progress import Progress
from emo.provenance import code_version
from emo.signal_writer import SignalWriter
from emo.store import BASIS, Basis, Shard, ShardName, read_basis, write_shard
from emo.teacher_pass import (
    CHUNK_TEXTS,
    importance_capture,
    teacher_batches,
    teacher_identity,
    teacher_pass,
)
from emo.texts import count_texts, text_chunks

logger = logging.getLogger(__name__)


def teach(
    teacher: Path,
    texts: Path,
    out: Path,
    dtype: str = "float32",
    settings: StoreSettings | None = None,
) -> None:
    """Store the teacher's signals for a shard of a text set.

    Args:
        teacher: The prepared teacher folder.
        texts: The text set (parquet).
        out: Folder of the shard; its name says which it is, such as ``1-of-2``. A basis that its
            states are stored in lies beside it.
        dtype: Precision of the pass.
        settings: How token states are stored; in full when None.

    Raises:
        CheckError: The teacher gives a vector that is not finite, or a state does not fit.
        ConfigError: The folder's name names no shard.
        DataError: The basis is missing.
    """
    settings = settings or StoreSettings()
    rows = ShardName.parse(out.name).rows(count_texts(texts))
    basis = read_basis(out.parent / BASIS) if settings.width is not None else None
    encoder = load_encoder(teacher, dtype).eval()
    identity = signals_identity(teacher, encoder, dtype, settings, basis)
    totals: dict[str, Any] = {}
    tokenizer = encoder.tokenizer()
    device = device_name(encoder.device)
    with (
        write_shard(out, identity, totals, device) as writer,
        Progress(len(rows), "teach") as progress,
    ):
        signals = SignalWriter(writer, settings, basis, encoder.vector_width, encoder.width)
        for chunk in text_chunks(texts, rows, CHUNK_TEXTS):
            for batch in teacher_batches(tokenizer(chunk.texts), encoder):
                encoding = teacher_pass(encoder, batch, importance_capture(batch))
                signals.append(chunk, batch, encoding)
                progress.advance(len(batch.rows))
        totals.update(signals.totals())
    logger.info("%s", Shard(out))


def signals_identity(
    teacher: Path, encoder: Encoder, dtype: str, settings: StoreSettings, basis: Basis | None
) -> dict[str, Any]:
    """Return everything that a shard of signals depends on besides its texts."""
    return teacher_identity(teacher, encoder, dtype) | {
        "store": settings.model_dump(),
        "basis": None if basis is None else basis.digest,
        "code": code_version("emo.teach"),
    }
