"""Foretold times, by a clock that moves only where a test lets time pass."""

import pytest

from emo import teach as teach_module
from emo.config_store import StoreSettings
from emo.encoder import load_encoder
from emo.plan import PlannedTraining, Starts, plan, probe, student, teacher
from emo.plan.corpus import read_corpus
from emo.store import ShardWriter
from emo.tokens import TextTokenizer
from emo.trainer import DistillationTrainer

from .conftest import SHARDS, TEXTS
from .test_sizes import NOTHING, foretold

TOKEN = 0.001
"""Seconds that a pass takes for each token of its batch, padding counted."""


@pytest.fixture
def passes(monkeypatch, clock):
    """Passes take their time; returns the tokens of those that ``emo teach`` makes."""
    usual = teach_module.teacher_pass
    tokens = []

    def timed(encoder, batch, capture):
        clock.now += TOKEN * batch.mask.numel()
        return usual(encoder, batch, capture)

    def counted(encoder, batch, capture):
        tokens.append(batch.mask.numel())
        return usual(encoder, batch, capture)

    monkeypatch.setattr(teacher, "teacher_pass", timed)
    monkeypatch.setattr(teach_module, "teacher_pass", counted)
    return tokens


def planned(tiny_models, texts, settings=None, training=None, starts=NOTHING):
    settings = settings or StoreSettings()
    return plan(texts, tiny_models.teacher, settings, "float32", SHARDS, training, starts)


def _pass(clock, seconds):
    clock.now += seconds


def taking(monkeypatch, clock, module, name, seconds):
    """Let a function take its time."""
    usual = getattr(module, name)

    def slow(*arguments, **named):
        _pass(clock, seconds)
        return usual(*arguments, **named)

    monkeypatch.setattr(module, name, slow)


def test_passes_take_as_long_as_their_tokens(tiny_models, texts, passes, short, tmp_path):
    forecast = planned(tiny_models, texts, starts=Starts(stage=3.0, training=100.0))
    assert forecast.passed_texts < TEXTS / 2
    for number in range(SHARDS):
        teach_module.teach(tiny_models.teacher, texts, tmp_path / f"{number + 1}-of-{SHARDS}")
    assert foretold(forecast, "teach_shard").seconds == pytest.approx(
        SHARDS * 3.0 + TOKEN * sum(passes)
    )


def test_loading_and_tokenizing_and_closing_are_added(
    tiny_models, texts, passes, short, clock, monkeypatch
):
    """Loading for each job, tokens for each text, closing for each byte."""
    taking(monkeypatch, clock, probe, "load_encoder", 7.0)
    read = TextTokenizer.__call__
    monkeypatch.setattr(
        TextTokenizer, "__call__", lambda s, t: (_pass(clock, 0.5 * len(t)), read(s, t))[1]
    )
    finish = ShardWriter.finish
    monkeypatch.setattr(ShardWriter, "finish", lambda *a: (_pass(clock, 2.0), finish(*a))[1])
    plain = 7.0 * SHARDS + 0.5 * TEXTS
    forecast = planned(tiny_models, texts)
    stage = foretold(forecast, "teach_shard")
    padded = _padded(tiny_models, texts)
    closing = stage.seconds - plain - TOKEN * padded
    sample = forecast.passed_texts / TEXTS
    assert closing == pytest.approx(2.0 / sample, rel=0.5), "by its bytes, which grow with texts"


def _padded(tiny_models, texts):
    return read_corpus(texts, SHARDS, load_encoder(tiny_models.teacher).tokenizer()).padded


def test_the_probe_ends_when_its_time_is_up(tiny_models, texts, passes, monkeypatch):
    monkeypatch.setattr(teacher, "LEAST_BATCHES", 1)
    counts = []
    for seconds in (0.0, 3.0, 1e6):
        monkeypatch.setattr(teacher, "PROBE_SECONDS", seconds)
        counts.append(planned(tiny_models, texts).passed_texts)
    assert counts[0] <= 32 < counts[1] < counts[2] == TEXTS


def test_a_training_has_texts_enough_for_its_batches(tiny_models, texts, passes, short):
    training = PlannedTraining(
        student=tiny_models.student, method={"form": "pooled"}, steps=5, batch_size=200
    )
    assert planned(tiny_models, texts, training=training).passed_texts >= 200


def test_steps_of_a_training_are_multiplied(tiny_models, texts, short, clock, monkeypatch):
    usual = DistillationTrainer.compute_loss
    monkeypatch.setattr(
        DistillationTrainer,
        "compute_loss",
        lambda *a, **k: (_pass(clock, 2.0), usual(*a, **k))[1],
    )
    monkeypatch.setattr(student, "save_trained", lambda *a: _pass(clock, 4.0))
    method = {"form": "pooled"}
    for steps in (20, 150):
        training = PlannedTraining(student=tiny_models.student, method=method, steps=steps)
        forecast = planned(tiny_models, texts, None, training, Starts(stage=0.0, training=9.0))
        assert foretold(forecast, "distil").seconds == pytest.approx(9.0 + 4.0 + 2.0 * steps)


def test_gradients_by_term_and_checkpoints_count_as_often_as_they_are_made(
    tiny_models, texts, short, clock, monkeypatch
):
    usual, save = DistillationTrainer._gradient_norms, DistillationTrainer._save_checkpoint
    monkeypatch.setattr(
        DistillationTrainer, "_gradient_norms", lambda *a: (_pass(clock, 3.0), usual(*a))[1]
    )
    monkeypatch.setattr(
        DistillationTrainer, "_save_checkpoint", lambda *a: (_pass(clock, 5.0), save(*a))[1]
    )
    training = PlannedTraining(student=tiny_models.student, method={"form": "emo"}, steps=120)
    stage = foretold(planned(tiny_models, texts, training=training), "distil")
    assert stage.seconds == pytest.approx(3 * 3.0 + 3 * 5.0), "every 50 steps and at the end"


def test_a_basis_takes_passes_over_its_sample_and_a_fit(
    tiny_models, texts, passes, short, clock, monkeypatch
):
    monkeypatch.setattr(teacher, "SAMPLE_TEXTS", TEXTS // 4)
    write = teacher.write_basis
    monkeypatch.setattr(teacher, "write_basis", lambda *a: (_pass(clock, 6.0), write(*a))[1])
    stage = foretold(planned(tiny_models, texts, StoreSettings(width=12)), "teach_basis")
    padded = _padded(tiny_models, texts)
    assert stage.seconds == pytest.approx(6.0 + TOKEN * padded / 4)


def test_maps_and_rows_grow_with_the_texts_and_loading_does_not(
    tiny_models, texts, short, clock, monkeypatch
):
    taking(monkeypatch, clock, student, "align", 4.0)
    taking(monkeypatch, clock, student, "load_tokenizer", 1.5)
    taking(monkeypatch, clock, student, "load_encoder", 6.0)
    usual = student.store_rows

    def rows(*arguments, **named):
        assert named["encoder"] is not None, "the teacher is loaded once"
        _pass(clock, 6.0 + 10.0)  # it loads the student, too
        return usual(*arguments, **named)

    monkeypatch.setattr(student, "store_rows", rows)
    training = PlannedTraining(student=tiny_models.student, method={"form": "emo"})
    forecast = planned(
        tiny_models, texts, training=training, starts=Starts(stage=2.0, training=50.0)
    )
    all_by_sample = TEXTS / forecast.passed_texts
    assert foretold(forecast, "align").seconds == pytest.approx(2.0 + 3.0 + 4.0 * all_by_sample)
    passing = foretold(forecast, "teach_rows_shard").seconds - SHARDS * (2.0 + 6.0)
    assert passing == pytest.approx(10.0 * all_by_sample, rel=0.25), "by tokens, not by texts"


def test_a_training_reads_all_texts_before_its_first_step(
    tiny_models, texts, short, clock, monkeypatch
):
    usual = TextTokenizer.__call__
    monkeypatch.setattr(
        TextTokenizer, "__call__", lambda s, t: (_pass(clock, 0.5 * len(t)), usual(s, t))[1]
    )
    training = PlannedTraining(student=tiny_models.student, method={"form": "pooled"}, steps=5)
    forecast = planned(tiny_models, texts, training=training)
    assert forecast.passed_texts < TEXTS
    assert foretold(forecast, "distil").seconds == pytest.approx(0.5 * TEXTS)
