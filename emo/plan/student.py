"""The student's part of a probe: a map, attention rows and steps of a training on a sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import torch

from emo.alignment.methods import align
from emo.alignment.stage import load_tokenizer
from emo.alignment.table import write_alignment
from emo.assembly import DistilSettings, assemble
from emo.attention_rows import store_rows
from emo.distil_inputs import DistilInputs
from emo.encoder import Encoder, load_encoder
from emo.plan.corpus import Corpus
from emo.plan.forecast import Stage
from emo.plan.sizes import grown, store_bytes
from emo.plan.stopwatch import Stopwatch, now
from emo.requests import AlignmentRequest, RowRequest
from emo.store import STORE_FILE, Shard, Store, gather
from emo.texts import Text, load_texts
from emo.trained_folder import save_trained
from emo.trainer import DistillationTrainer

STEPS = 10
"""Steps of the probe's training; the first takes longer and does not count."""
_SHORT = {
    "steps": STEPS,
    "log_every": 1,
    "gradient_norms_every": STEPS,
    "checkpoint_every": STEPS,
}


@dataclass(frozen=True, slots=True)
class Sample:
    """What the student's part of a probe works on.

    Attributes:
        folder: Where it may write.
        corpus: The whole text set.
        texts: The sample of it, a text set.
        store: The teacher's signals for it.
        share: Tokens of the sample's passes by those of all passes, padding counted.
        teacher: The teacher's folder.
        encoder: The teacher.
        dtype: Precision of its passes.
        load_seconds: How long it took to load.
        student: The student's folder.
    """

    folder: Path
    corpus: Corpus
    texts: Path
    store: Path
    share: float
    teacher: Path
    encoder: Encoder
    dtype: str
    load_seconds: float
    student: Path

    @property
    def count(self) -> int:
        """Texts of the sample."""
        return len(Store(self.store))


def probe_alignment(sample: Sample, request: AlignmentRequest, start: float) -> tuple[Path, Stage]:
    """Map the sample's tokens, and foretell the map of all texts."""
    path = sample.folder / f"{request.name}.parquet"
    loading, mapping = Stopwatch(), Stopwatch()
    with loading:
        teacher, student = load_tokenizer(str(sample.teacher)), load_tokenizer(str(sample.student))
    read: Sequence[Text] = load_texts(sample.texts).texts
    with mapping:
        made = align(read, teacher, student, request.method, request.text)
        write_alignment(made, path)
    all_by_sample = sample.corpus.texts / sample.count
    return path, Stage(
        "align",
        jobs=1,
        seconds=start + loading.seconds + mapping.seconds * all_by_sample,
        bytes=round(path.stat().st_size * all_by_sample),
    )


def probe_rows(
    sample: Sample, request: RowRequest, alignment: Path, half: bool, shards: int, start: float
) -> tuple[Path, Stage]:
    """Store the sample's attention rows, and foretell those of all texts."""
    folder = sample.folder / "rows"
    loading, working = Stopwatch(), Stopwatch()
    with loading:
        load_encoder(sample.student, device=torch.device("cpu")).tokenizer()
    with working:
        store_rows(
            request,
            teacher=sample.teacher,
            student=sample.student,
            texts=sample.texts,
            store=sample.store,
            alignment=alignment,
            out=folder / "1-of-1",
            dtype=sample.dtype,
            precision="float16" if half else "float32",
            encoder=sample.encoder,
        )
    gather([folder / "1-of-1"], folder / STORE_FILE)
    passing = max(0.0, working.seconds - loading.seconds) / sample.share
    shard = Shard(folder / "1-of-1")
    return folder / STORE_FILE, Stage(
        "teach_rows_shard",
        jobs=shards,
        seconds=shards * (start + sample.load_seconds + loading.seconds) + passing,
        bytes=store_bytes(
            shard, sample.corpus.texts, _ragged(sample, shard), shards, sample.corpus.chunks
        ),
    )


def probe_training(
    settings: DistilSettings, inputs: DistilInputs, sample: Sample, start: float
) -> Stage:
    """Take a few steps on the sample, and foretell the whole training."""
    training, folder = settings.training, sample.folder / "training"
    preparing, ending, reading = Stopwatch(), Stopwatch(), Stopwatch()
    with preparing:
        made = assemble(settings, inputs, folder)
    ticks: list[float] = []
    trainer = DistillationTrainer(
        made.model,
        training.model_copy(update=_SHORT),
        made.collator,
        len(made.tokenized),
        folder,
        settings.seed,
        record=lambda entry: ticks.append(now()),
    )
    trainer.train()
    ended = now()
    with ending:
        save_trained(made.model.student, inputs.student, folder / "student")
    with reading:
        made.model.student.tokenizer()(load_texts(sample.texts).texts)
    *steps, last = np.diff(ticks).tolist()  # before the last tick gradients by term are taken
    step = median(steps)
    unread = reading.seconds * (sample.corpus.texts / sample.count - 1)
    norms = max(0.0, last - step) * _times(training.steps, training.gradient_norms_every)
    sealing = max(0.0, ended - ticks[-1] - step) * _times(training.steps, training.checkpoint_every)
    seconds = start + preparing.seconds + unread + training.steps * step + norms + sealing
    return Stage("distil", jobs=1, seconds=seconds + ending.seconds, bytes=0)


def _times(steps: int, every: int) -> int:
    """How often something is done that is done every so many steps and at the end."""
    return -(-steps // every)


def _ragged(sample: Sample, shard: Shard) -> dict[str, float]:
    """Foretell how many rows the arrays of attention rows will have."""
    signals = Store(sample.store)
    lengths = signals.counts("importance")[signals.rows(shard.keys())]
    length_sum = sample.corpus.total(lambda text: len(text.places))
    square_sum = sample.corpus.total(lambda text: len(text.places) ** 2)
    return {
        offsets: grown(np.diff(shard.array(offsets)), lengths, length_sum, square_sum)
        for offsets in set(shard.offsets.values())
    }
