"""The teacher's part of a probe: real passes over batches of all lengths, written as they will be.

How long a pass takes follows the tokens of its batch, padding counted; so the time of all passes is
foretold by their tokens.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emo.attention import Capture
from emo.config_store import StoreSettings
from emo.encoder import Encoder, device_name
from emo.plan.corpus import Corpus, PlannedBatch, sample_order
from emo.plan.stopwatch import Stopwatch
from emo.signal_writer import SignalWriter
from emo.store import Basis, Shard, write_shard
from emo.teach_basis import SAMPLE_TEXTS, Moments, write_basis
from emo.teacher_pass import (
    TeacherBatch,
    importance_capture,
    teacher_batches,
    teacher_pass,
    token_states,
)

PROBE_SECONDS = 15.0
"""After so long no further batch is passed."""
WARM_UP = 2
"""Batches that are passed before the clock starts."""
LEAST_BATCHES = 4
BASIS_BATCHES = 8


@dataclass(frozen=True, slots=True)
class TeacherProbe:
    """What the passes of a probe took and left.

    Attributes:
        passed: The batches.
        token_seconds: Time by token of a batch, padding counted.
        byte_seconds: Time by byte for closing and checksums of a shard.
        shard: What was written.
    """

    passed: Sequence[PlannedBatch]
    token_seconds: float
    byte_seconds: float
    shard: Shard

    @property
    def padded(self) -> int:
        """Tokens of the batches, padding counted."""
        return sum(batch.padded for batch in self.passed)


def probe_teacher(
    encoder: Encoder,
    corpus: Corpus,
    identity: dict[str, Any],
    settings: StoreSettings,
    basis: Basis | None,
    out: Path,
    least_texts: int,
) -> TeacherProbe:
    """Pass batches of all lengths and store their signals, for a few seconds.

    Args:
        encoder: The teacher.
        corpus: The text set.
        identity: What the shard is made from.
        settings: How token states are stored.
        basis: Components they are stored in, if any.
        out: Folder of the shard.
        least_texts: Go on until so many texts were passed, however long it takes.
    """
    order = sample_order(corpus.batches)
    for planned in order[:WARM_UP]:
        batch = _batch(planned, encoder)
        teacher_pass(encoder, batch, importance_capture(batch)).vectors.cpu()
    passes, closing = Stopwatch(), Stopwatch()
    passed: list[PlannedBatch] = []
    totals: dict[str, Any] = {}
    texts = 0
    with ExitStack() as stack:
        device = device_name(encoder.device)
        writer = stack.enter_context(write_shard(out, identity, totals, device))
        signals = SignalWriter(writer, settings, basis, encoder.vector_width, encoder.width)
        for planned in order:
            enough = len(passed) >= LEAST_BATCHES and texts >= least_texts
            if enough and passes.seconds >= PROBE_SECONDS:
                break
            with passes:
                batch = _batch(planned, encoder)
                encoding = teacher_pass(encoder, batch, importance_capture(batch))
                signals.append(planned.texts, batch, encoding)
            passed.append(planned)
            texts += len(planned.tokenized)
        totals.update(signals.totals())
        with closing:
            stack.close()
    shard = Shard(out)
    padded = sum(planned.padded for planned in passed)
    return TeacherProbe(passed, passes.seconds / padded, closing.seconds / shard.bytes, shard)


def probe_basis(
    encoder: Encoder, corpus: Corpus, width: int, identity: dict[str, Any], out: Path
) -> float:
    """Fit a basis on a few batches, and return how long fitting a real one will take.

    Args:
        encoder: The teacher.
        corpus: The text set.
        width: Components kept.
        identity: What the basis is made from.
        out: Its folder.
    """
    moments, passes, fitting = Moments(encoder.width), Stopwatch(), Stopwatch()
    order = sample_order(corpus.batches)[: WARM_UP + BASIS_BATCHES]
    padded = 0
    for number, planned in enumerate(order):
        watch = passes if number >= WARM_UP or len(order) <= WARM_UP else Stopwatch()
        with watch:
            batch = _batch(planned, encoder)
            encoding = teacher_pass(encoder, batch, Capture())
            moments.add(token_states(batch, encoding))
        padded += planned.padded if watch is passes else 0
    with fitting:
        write_basis(moments, width, identity, out)
    share = min(1.0, SAMPLE_TEXTS / corpus.texts)
    return passes.seconds / padded * corpus.padded * share + fitting.seconds


def _batch(planned: PlannedBatch, encoder: Encoder) -> TeacherBatch:
    """A batch's texts alone are the same batch again: it began with its longest and was full."""
    (batch,) = teacher_batches(planned.tokenized, encoder)
    return batch
