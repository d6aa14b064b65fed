"""The probe: load the teacher, count the texts, pass some of them, and foretell the rest."""

import logging
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from pydantic import BaseModel, ConfigDict, Field

from emo.assembly import DistilSettings
from emo.config_methods import Family, MethodSettings
from emo.config_store import StoreSettings
from emo.config_training import TrainingSettings
from emo.distil_inputs import DistilInputs
from emo.encoder import Encoder, device_name, load_encoder, require_model_folder
from emo.errors import ConfigError
from emo.labelled_texts import load_targets
from emo.plan.corpus import Corpus, read_corpus
from emo.plan.forecast import Forecast, Stage
from emo.plan.sizes import store_bytes
from emo.plan.stopwatch import Stopwatch
from emo.plan.student import (
    Sample,
    probe_alignment,
    probe_rows,
    probe_training,
)
from emo.plan.teacher import TeacherProbe, probe_basis, probe_teacher
from emo.requests import signal_request
from emo.store import BASIS, STORE_FILE, gather, read_basis
from emo.teach import signals_identity
from emo.teach_basis import basis_identity, require_width
from emo.texts import TextSet, save_texts
from emo.tokens import TokenizedText

logger = logging.getLogger(__name__)


class PlannedTraining(BaseModel):
    """The student's part of a plan.

    Attributes:
        student: The prepared student folder.
        method: The method.
        family: Family of the text set.
        steps: Optimiser steps; None leaves the training itself out.
        batch_size: Texts of a step.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    student: Path
    method: MethodSettings
    family: Family = "sts"
    steps: int | None = Field(None, gt=0)
    batch_size: int = Field(32, gt=0)


@dataclass(frozen=True, slots=True)
class Starts:
    """Seconds from the start of a program to its first own line, imports included.

    Attributes:
        stage: Of a stage that runs the teacher.
        training: Of a training.
    """

    stage: float
    training: float


def plan(
    texts: Path,
    teacher: Path,
    settings: StoreSettings,
    dtype: str,
    shards: int,
    training: PlannedTraining | None,
    starts: Starts,
) -> Forecast:
    """Foretell what the signals of a teacher, and a training, will cost on this machine.

    Args:
        texts: The text set.
        teacher: The prepared teacher folder.
        settings: How token states are stored.
        dtype: Precision of the pass.
        shards: Shards of the store.
        training: The student's part, if any.
        starts: How long programs take to start.

    Raises:
        ConfigError: States have fewer dimensions than are to be kept, the student's folder is none,
            there are fewer texts than a batch takes, or a training with labels is asked for.
        DataError: A file is missing or damaged.
    """
    whole, loading = Stopwatch(), Stopwatch()
    with whole, TemporaryDirectory(prefix="emo-plan-") as name:
        with loading:
            encoder = load_encoder(teacher, dtype).eval()
            tokenizer = encoder.tokenizer()
        corpus = read_corpus(texts, shards, tokenizer)
        if training is not None:
            _require_ready(training, corpus, texts)
        logger.info("the probe takes some tens of seconds, longer if a batch alone does")
        probe = _Probe(Path(name), teacher, encoder, dtype, corpus, shards, loading.seconds, starts)
        stages = probe.teacher_stages(settings, training.batch_size if training else 1)
        if training is not None:
            stages += probe.student_stages(settings, training)
    return Forecast(
        texts=corpus.texts,
        tokens=round(corpus.total(_tokens)),
        counted_texts=corpus.counted,
        passed_texts=probe.passed.shard.texts,
        device=device_name(encoder.device),
        threads=torch.get_num_threads(),
        probe_seconds=whole.seconds,
        stages=stages,
    )


def _require_ready(training: PlannedTraining, corpus: Corpus, texts: Path) -> None:
    """Say at once what would be found out after the teacher's part."""
    require_model_folder(training.student)
    if training.steps is not None and corpus.texts < training.batch_size:
        raise ConfigError(
            f"{texts}: {corpus.texts} texts do not fill one batch; lower --batch-size "
            f"(now {training.batch_size}) or give more texts"
        )
    if training.steps is not None and (training.method.logits or load_targets(texts)):
        raise ConfigError(
            f"{texts}: a training on labels is not foretold, since its probe has none; leave out "
            "--steps, or give a text set without labels and a method without `logits`"
        )


class _Probe:
    """The stages, one after the other, in a folder that is thrown away."""

    passed: TeacherProbe

    def __init__(
        self,
        folder: Path,
        teacher: Path,
        encoder: Encoder,
        dtype: str,
        corpus: Corpus,
        shards: int,
        load_seconds: float,
        starts: Starts,
    ) -> None:
        self._folder, self._store = folder, folder / "store"
        self._teacher, self._encoder, self._dtype = teacher, encoder, dtype
        self._corpus, self._shards = corpus, shards
        self._load_seconds, self._starts = load_seconds, starts

    def teacher_stages(self, settings: StoreSettings, least_texts: int) -> list[Stage]:
        """Foretell the basis and the store."""
        job = self._starts.stage + self._load_seconds
        stages, basis = [], None
        if settings.width is not None:
            require_width(self._encoder, settings.width)
            out = self._store / BASIS
            made_from = basis_identity(self._teacher, self._encoder, self._dtype)
            seconds = probe_basis(self._encoder, self._corpus, settings.width, made_from, out)
            size = sum(file.stat().st_size for file in out.iterdir())
            stages.append(Stage("teach_basis", jobs=1, seconds=job + seconds, bytes=size))
            basis = read_basis(out)
        corpus = self._corpus
        self.passed = probe_teacher(
            self._encoder,
            corpus,
            signals_identity(self._teacher, self._encoder, self._dtype, settings, basis),
            settings,
            basis,
            self._store / "1-of-1",
            least_texts,
        )
        ragged = {"offsets": corpus.total(_tokens)}
        if (most := settings.tokens) is not None:
            ragged["kept_offsets"] = corpus.total(lambda text: min(most, _text_tokens(text)))
        shard = self.passed.shard
        size = store_bytes(shard, corpus.texts, ragged, self._shards, corpus.chunks)
        working = corpus.scaled(corpus.tokenize_seconds)
        working += corpus.padded * self.passed.token_seconds + size * self.passed.byte_seconds
        return [*stages, Stage("teach_shard", self._shards, self._shards * job + working, size)]

    def student_stages(self, settings: StoreSettings, training: PlannedTraining) -> list[Stage]:
        """Foretell the map, the attention rows and the training."""
        gather([self._store / "1-of-1"], self._store / STORE_FILE)
        sample, start = self._sample(training.student), self._starts.stage
        stages: list[Stage] = []
        alignment: Path | None = None
        row_map: Path | None = None
        rows: Path | None = None
        online = settings.states == "online"
        request = signal_request(training.method, training.family)
        if request.alignment is not None:
            alignment, stage = probe_alignment(sample, request.alignment, start)
            stages.append(stage)
        if request.rows is not None:
            row_map = alignment
            if request.alignment != request.rows.map or row_map is None:
                row_map, stage = probe_alignment(sample, request.rows.map, start)
                stages.append(stage)
        if request.rows is not None and row_map is not None and not online:
            half = settings.states != "float32"
            rows, stage = probe_rows(sample, request.rows, row_map, half, self._shards, start)
            stages.append(stage)
        if training.steps is not None:
            inputs = DistilInputs(
                student=training.student,
                texts=sample.texts,
                store=sample.store,
                alignment=alignment,
                rows=rows,
                teacher=self._teacher if online else None,
                row_alignment=row_map if online else None,
            )
            planned = _distil_settings(training, training.steps)
            stages.append(probe_training(planned, inputs, sample, self._starts.training))
        return stages

    def _sample(self, student: Path) -> Sample:
        batches = self.passed.passed
        path = self._folder / "texts.parquet"
        texts = TextSet(
            [text for batch in batches for text in batch.texts.texts],
            [key for batch in batches for key in batch.texts.keys],
        )
        save_texts(texts, path)
        return Sample(
            folder=self._folder,
            corpus=self._corpus,
            texts=path,
            store=self._store / STORE_FILE,
            share=self.passed.padded / self._corpus.padded,
            teacher=self._teacher,
            encoder=self._encoder,
            dtype=self._dtype,
            load_seconds=self._load_seconds,
            student=student,
        )


def _distil_settings(training: PlannedTraining, steps: int) -> DistilSettings:
    budget = TrainingSettings(
        steps=steps,
        batch_size=training.batch_size,
        learning_rate=1e-4,  # has no part in what is foretold
    )
    return DistilSettings(method=training.method, training=budget, family=training.family, seed=1)


def _tokens(text: TokenizedText) -> int:
    return len(text.places)


def _text_tokens(text: TokenizedText) -> int:
    return int((~text.prompt & ~text.special).sum())
