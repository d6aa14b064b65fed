"""The loop around a tuning: what is optimised at which rate, and what a checkpoint holds."""

import math

import pytest
import torch
from safetensors.torch import load_file

from emo.encoder import load_encoder
from emo.errors import DataError
from emo.supervised_rows import read_supervised_rows
from emo.tuning.adapter import add_adapter
from emo.tuning.examples import Examples
from emo.tuning.objective import build_objective
from emo.tuning.trainer import HEAD_LEARNING_RATE, WEIGHT_DECAY, Tuning, TuningTrainer

from .conftest import settings


@pytest.fixture
def trainer(tiny_models, tasks, tmp_path):
    """Build a trainer of the classification task; its records are in `records`."""

    def trainer(kind="lora", **changes):
        torch.manual_seed(0)
        rows = read_supervised_rows(tasks("classification"), ())
        encoder = load_encoder(tiny_models.teacher)
        chosen = settings(kind, **changes)
        if kind == "lora":
            add_adapter(encoder, chosen)
        tokenizer, records = encoder.tokenizer(), []
        made = TuningTrainer(
            Tuning(encoder, build_objective("classification", "apart", 48, 3)),
            chosen,
            "classification",
            Examples(rows.train, tokenizer, joint=False),
            Examples(rows.validation, tokenizer, joint=False),
            tmp_path / "checks",
            records.append,
        )
        made.records = records
        return made

    return trainer


@pytest.mark.parametrize("kind", ["lora", "full"])
def test_the_head_learns_at_its_own_rate_without_decay(trainer, kind):
    made = trainer(kind, learning_rate=1e-4)
    matrices, vectors, heads = made.create_optimizer().param_groups
    assert (matrices["lr"], matrices["weight_decay"]) == (1e-4, WEIGHT_DECAY)
    assert (vectors["lr"], vectors["weight_decay"]) == (1e-4, 0.0)
    assert (heads["lr"], heads["weight_decay"]) == (HEAD_LEARNING_RATE, 0.0)
    assert {id(p) for p in heads["params"]} == {id(p) for p in made.tuning.objective.parameters()}
    optimised = [p for group in (matrices, vectors, heads) for p in group["params"]]
    assert set(map(id, optimised)) == {id(p) for p in made.tuning.trained().values()}
    assert len(optimised) == len(made.tuning.trained())
    assert all(p.ndim == 1 for p in vectors["params"])


def test_warm_up_then_cosine_decay(trainer):
    """36 rows in batches of 6 are six steps a pass, twelve in all."""
    made = trainer(batch_size=6, epochs=2, warmup=0.25, learning_rate=1e-3)
    made.train()
    told = {entry["step"]: entry["learning_rate"] for entry in made.records if "loss" in entry}
    assert told[1] == 0.0
    # The tenth step is taken after nine: six of the nine steps behind the warm-up.
    assert told[10] == pytest.approx(1e-3 * 0.5 * (1 + math.cos(math.pi * 6 / 9)))


def test_every_pass_reads_all_rows_in_another_order(trainer):
    made = trainer(batch_size=8, epochs=2)
    seen = []
    collator = made.data_collator
    made.data_collator = lambda batch: seen.append([id(e.texts) for e in batch]) or collator(batch)
    made.score = lambda: 0.5
    made.train()
    assert [len(batch) for batch in seen] == [8, 8, 8, 8, 4] * 2
    first, second = sum(seen[:5], []), sum(seen[5:], [])
    assert sorted(first) == sorted(second)
    assert len(set(first)) == 36
    assert first != second


def test_the_first_of_equal_epochs_is_the_best(trainer):
    made = trainer()
    made.score = iter([0.5, 0.7, 0.7]).__next__
    made.train()
    assert made.state.best_global_step == 10


def test_the_best_epoch_is_kept_and_taken_however_old(trainer, tmp_path):
    """Checkpoints are discarded meanwhile; without the best one the last would be taken."""
    made = trainer(epochs=4)
    made.score = iter([0.9, 0.5, 0.6, 0.7]).__next__
    made.train()
    folder = tmp_path / "checks"
    kept = {path.name for path in folder.glob("checkpoint-*")}
    assert kept == {"checkpoint-5", "checkpoint-15", "checkpoint-20"}
    best, last = (load_file(folder / f"checkpoint-{n}" / "model.safetensors") for n in (5, 20))
    trained = made.tuning.trained()
    assert all(torch.equal(weight, best[name]) for name, weight in trained.items())
    assert any(not torch.equal(weight, last[name]) for name, weight in trained.items())


def test_a_checkpoint_holds_what_is_trained_and_no_more(trainer, tmp_path):
    """Of a teacher of 28 GB the adapters are some MB."""
    made = trainer(epochs=1)
    made.train()
    names = load_file(tmp_path / "checks" / "checkpoint-5" / "model.safetensors").keys()
    assert names == made.tuning.trained().keys()
    assert all("lora_" in name or name.startswith("objective.") for name in names)


def test_weights_of_another_tuning_are_refused(trainer):
    lora, full = trainer(), trainer("full")
    with pytest.raises(DataError, match="the checkpoint is of another tuning"):
        lora.tuning.load_state_dict(full.tuning.state_dict())
    other = {name: weight + 1 for name, weight in lora.tuning.state_dict().items()}
    lora.tuning.load_state_dict(other)
    assert all(torch.equal(weight, other[name]) for name, weight in lora.tuning.trained().items())


def test_a_score_neither_drops_nor_draws(trainer):
    """Validated with dropout, or with its draws, a resumed tuning would end elsewhere."""
    made = trainer()
    made.tuning.train()
    before = torch.get_rng_state()
    assert made.score() == made.score()
    assert torch.equal(torch.get_rng_state(), before)
    assert made.tuning.training
