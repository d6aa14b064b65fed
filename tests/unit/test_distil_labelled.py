"""Trainings with labels: what comes out, and that an interrupted one ends the same."""

import json
import logging

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from emo.distil import distil
from emo.encoder import load_encoder
from emo.errors import ConfigError
from emo.history import read_history
from emo.outputs import read_json
from emo.task_head import load_task_head

from .tiny_labelled import METHODS, inputs, settings
from .tiny_training import killed_at, weights

TERMS = {
    "sft": {"task"},
    "logit": {"task", "logits"},
    "pooled": {"task", "cosine", "relational"},
    "emo-paper": {"task", "attention", "transport"},
    "emo": {"task", "logits", "cosine", "relational", "attention", "transport"},
}


@pytest.fixture(scope="module")
def trained(labelled, tmp_path_factory):
    """The result of a whole training of a method on a family's set, made once."""
    made = {}

    def trained(family, name):
        if (family, name) not in made:
            folder, files = tmp_path_factory.mktemp(name), labelled(family)
            chosen, read = settings(files, name), inputs(files, name)
            distil(chosen, read, [], folder / "checkpoints", folder / "out")
            made[family, name] = folder / "out"
        return made[family, name]

    return trained


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_trains_its_terms(trained, name):
    history = read_history(trained("classification", name) / "history.jsonl")
    assert all(record["terms"].keys() == TERMS[name] for record in history)
    assert history[-1]["gradient_norms"]["task"] > 0


@pytest.mark.parametrize("family", ["classification", "pairs", "sts"])
def test_the_head_lies_beside_the_student_and_is_no_part_of_it(labelled, trained, family):
    out = trained(family, "logit")
    assert sorted(path.name for path in out.iterdir()) == [
        "history.jsonl",
        "student",
        "task_head.json",
        "task_head.safetensors",
        "training.json",
    ]
    labels = {"classification": ["person", "place", "thing"], "pairs": ["0", "1"], "sts": []}
    assert read_json(out / "task_head.json") == {"family": family, "labels": labels[family]}
    student = SentenceTransformer(str(out / "student"), device="cpu")
    assert student.encode(["a cat sings"]).shape == (1, 48)
    own = load_file(out / "student" / "model.safetensors").keys()
    assert own == load_file(labelled(family).student / "model.safetensors").keys()
    head = load_task_head(out / "task_head.json", load_encoder(out / "student"))
    assert (head.family, head.labels) == (family, labels[family])
    saved = load_file(out / "task_head.safetensors")
    assert all(torch.equal(saved[name], value) for name, value in head.task.state_dict().items())


def test_the_head_learns(labelled, trained, tmp_path):
    """With a first step at rate 0 it is as it began."""
    files, name = labelled("classification"), "sft"
    one_step = settings(files, name, steps=1, warmup=0.9, learning_rate=1e-30)
    one_step = one_step.model_copy(
        update={"training": one_step.training.model_copy(update={"head_learning_rate": 1e-30})}
    )
    distil(one_step, inputs(files, name), [], tmp_path / "checks", tmp_path / "out")
    before, after = (
        load_file(out / "task_head.safetensors")
        for out in (tmp_path / "out", trained("classification", name))
    )
    assert all(not torch.equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize(
    ("family", "name", "step"),
    [("classification", "sft", 3), ("sts", "logit", 5), ("pairs", "emo", 3)],
)
def test_a_resumed_training_ends_with_the_same_student_and_head(
    labelled, trained, tmp_path, family, name, step
):
    files = labelled(family)

    def run():
        chosen, read = settings(files, name), inputs(files, name)
        distil(chosen, read, [], tmp_path / "checks", tmp_path / "out")

    with killed_at(step):
        run()
    run()
    whole, out = trained(family, name), tmp_path / "out"
    assert read_json(out / "training.json")["resumed_from_step"] == step - 1
    assert weights(out) == weights(whole)
    head = "task_head.safetensors"
    assert (out / head).read_bytes() == (whole / head).read_bytes()
    assert read_history(out / "history.jsonl") == read_history(whole / "history.jsonl")


def test_another_head_is_another_training_and_another_record_is_not(
    labelled, trained, tmp_path, caplog
):
    """The record also says how long the tuning took, which changes when it runs again."""
    files, whole = labelled("classification"), trained("classification", "logit")
    record = tmp_path / "tuning.json"
    record.write_text(json.dumps(read_json(files.tuning) | {"seconds": 0.0}))
    head = load_file(files.tuning.with_name("head.safetensors"))
    save_file(head, tmp_path / "head.safetensors")

    def run(out):
        chosen, read = settings(files, "logit"), inputs(files, "logit", tuning=record)
        with caplog.at_level(logging.INFO):
            distil(chosen, read, [], tmp_path / "checks", out)

    run(whole)
    assert "already finished by another process" in caplog.text
    save_file({name: 2 * weight for name, weight in head.items()}, tmp_path / "head.safetensors")
    run(tmp_path / "out")
    identities = {read_json(out / "training.json")["identity"] for out in (whole, tmp_path / "out")}
    assert len(identities) == 2
    assert weights(tmp_path / "out") != weights(whole), "its answers are learned from"


def test_a_labelled_set_asks_for_a_head_term(labelled, tmp_path):
    files = labelled("classification")
    chosen = settings(files, "pooled")
    method = chosen.method.model_copy(update={"task": 0.0})
    chosen = chosen.model_copy(update={"method": method})
    with pytest.raises(ConfigError, match="is labelled, and without `task` or `logits`"):
        distil(chosen, inputs(files, "pooled"), [], tmp_path / "checks", tmp_path / "out")
    assert not (tmp_path / "out").exists()
