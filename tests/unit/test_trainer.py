import math
import os

import pytest
import torch

from emo.batches import Collator
from emo.config_methods import PooledSettings
from emo.config_training import TrainingSettings
from emo.encoder import load_encoder
from emo.methods import build_method
from emo.store import Store
from emo.texts import text_key
from emo.trainer import Distillation, DistillationTrainer

TRAINING = {"steps": 7, "batch_size": 6, "learning_rate": 1e-3, "head_learning_rate": 1e-2}


@pytest.fixture
def trainer(tiny, tmp_path):
    """Build a trainer of the pooled form; its records are in `records`."""

    def trainer(**training):
        torch.manual_seed(0)
        student = load_encoder(tiny.student)
        student.add_head(torch.nn.Linear(32, 48))
        method = build_method(
            PooledSettings(form="pooled"),
            student_layers=(),
            student_width=32,
            vector_centre=torch.zeros(48),
            state_centre=torch.zeros(48),
        )
        texts = list(tiny.texts_read)
        collator = Collator(
            student.tokenizer()(texts), list(map(text_key, texts)), 0, Store(tiny.store)
        )
        records = []
        made = DistillationTrainer(
            Distillation(student, method.to(student.device)),
            TrainingSettings(**TRAINING | training),
            collator,
            len(texts),
            tmp_path / "checks",
            1,
            records.append,
        )
        made.records = records
        return made

    return trainer


def test_projections_learn_at_their_own_rate_without_decay(trainer):
    """Decay on a fitted head pulls it from its solution; none on biases and norms."""
    made = trainer(weight_decay=0.1)
    optimizer = made.create_optimizer()
    matrices, vectors, heads = optimizer.param_groups
    assert (matrices["lr"], matrices["weight_decay"]) == (1e-3, 0.1)
    assert (vectors["lr"], vectors["weight_decay"]) == (1e-3, 0.0)
    assert (heads["lr"], heads["weight_decay"]) == (1e-2, 0.0)
    assert {id(p) for p in heads["params"]} == {id(p) for p in made.model.student.head.parameters()}
    assert all(parameter.ndim == 1 for parameter in vectors["params"])
    covered = sum(len(group["params"]) for group in optimizer.param_groups)
    assert covered == len(list(made.model.parameters()))


def test_first_last_and_every_nth_step_are_recorded(trainer):
    made = trainer(log_every=5, gradient_norms_every=2)
    made.train()
    assert [record["step"] for record in made.records] == [1, 2, 4, 5, 6, 7]
    normed = [record["step"] for record in made.records if "gradient_norms" in record]
    assert normed == [1, 2, 4, 6]


def test_warm_up_then_cosine_decay(trainer):
    made = trainer(steps=10, warmup=0.2, log_every=1)
    made.train()
    rates = [record["learning_rate"] for record in made.records]
    expected = [0.0, 0.5] + [0.5 * (1 + math.cos(math.pi * step / 8)) for step in range(8)]
    assert rates == pytest.approx([1e-3 * factor for factor in expected])


def test_gradient_norms_are_of_the_weighted_terms_on_the_student(trainer):
    """They say which term teaches; the projection's own gradient is no part of that."""
    made = trainer()
    batch = made.data_collator(range(6))
    made.model.eval()
    terms = made.model(**batch)
    norms = made._gradient_norms(terms)
    assert norms.keys() == {"cosine", "relational"}
    made.model.zero_grad()
    made.model(**batch).losses["cosine"].backward()
    squares = [
        parameter.grad.square().sum()
        for parameter in made.model.student.parameters()
        if parameter.grad is not None
    ]
    assert norms["cosine"] == pytest.approx(torch.stack(squares).sum().sqrt().item(), rel=1e-4)


def test_logging_more_does_not_change_the_training(trainer):
    """The norms take extra backward passes, which must leave weights and random state alone."""
    rare = trainer(log_every=7, gradient_norms_every=7)
    rare.train()
    often = trainer(log_every=1, gradient_norms_every=1)
    often.train()
    assert len(rare.records) < len(often.records)
    for first, second in zip(rare.model.parameters(), often.model.parameters(), strict=True):
        assert torch.equal(first, second)


def test_batches_are_full_shuffled_and_without_repeats(trainer):
    """24 texts in batches of 7: in-batch terms need whole batches, so three are an epoch."""
    made = trainer(steps=4, batch_size=7)
    seen = []
    collator = made.data_collator
    made.data_collator = lambda batch: seen.append(list(batch)) or collator(batch)
    made.train()
    assert {len(batch) for batch in seen} == {7}
    epoch = [text for batch in seen[:3] for text in batch]
    assert len(set(epoch)) == 21
    assert epoch != sorted(epoch)


def test_batches_are_made_in_the_process_that_trains(trainer):
    """An online teacher lives in it, and a worker could not use its device."""
    made = trainer(steps=2)
    seen = []
    collator = made.data_collator
    made.data_collator = lambda batch: seen.append(os.getpid()) or collator(batch)
    made.train()
    assert set(seen) == {os.getpid()}
