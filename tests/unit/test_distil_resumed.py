"""Trainings that are killed and started again: they end as if nothing had happened."""

import json
import logging
import shutil

import pytest
from safetensors.torch import load_file

from emo.checkpoints import latest_sealed
from emo.distil import distil
from emo.history import read_history
from emo.outputs import read_json

from .tiny_training import inputs, killed_at, settings, weights


@pytest.fixture
def interrupted(tiny, tmp_path):
    """Interrupt a training and return how to run it again."""

    def interrupted(form, step, **chosen):
        def again(**changes):
            chosen = {"settings": settings(form), "inputs": inputs(tiny, form)} | changes
            distil(chosen["settings"], chosen["inputs"], [], tmp_path / "checks", tmp_path / "out")
            return tmp_path / "out"

        with killed_at(step):
            again(**chosen)
        return again

    return interrupted


def checkpoints(tmp_path):
    (folder,) = (path for path in (tmp_path / "checks").iterdir() if path.is_dir())
    return folder


@pytest.mark.parametrize(
    ("form", "step"), [("pooled", 3), ("emo", 1), ("emo", 4), ("emo", 5), ("emo-paper", 3)]
)
def test_a_resumed_training_ends_as_an_undisturbed_one(
    undisturbed, interrupted, caplog, form, step
):
    """Pitfalls 6, 89, 90 and 91: head, optimiser, order of texts and dropout all go on."""
    again = interrupted(form, step)
    with caplog.at_level(logging.INFO):
        out = again()
    last = step - step % 2
    assert ("resuming from" in caplog.text) == (last > 0)
    assert read_json(out / "training.json")["resumed_from_step"] == last
    assert weights(out) == weights(undisturbed(form))
    assert read_history(out / "history.jsonl") == read_history(undisturbed(form) / "history.jsonl")


@pytest.mark.parametrize("schedule", ["fade", "grow"])
def test_a_schedule_of_the_token_terms_goes_on_where_it_stopped(
    tiny, interrupted, tmp_path, schedule
):
    """The share of the steps that are done is that of the whole training, not of the part."""
    moving = settings("emo", method={"token_schedule": schedule}, gradient_norms_every=6)
    whole = tmp_path / "whole"
    distil(moving, inputs(tiny), [], tmp_path / "other-checks", whole)
    out = interrupted("emo", 5, settings=moving)(settings=moving)
    assert read_json(out / "training.json")["resumed_from_step"] == 4
    assert weights(out) == weights(whole)
    history = read_history(out / "history.jsonl")
    assert history == read_history(whole / "history.jsonl")
    recorded = ["transport" in record["terms"] for record in history]
    assert recorded == [{"fade": step < 3, "grow": step > 0}[schedule] for step in range(6)]


def test_a_training_that_is_killed_again_and_again_ends_the_same(undisturbed, interrupted):
    again = interrupted("emo", 3)
    for step in (3, 5):
        with killed_at(step):
            again()
    assert weights(again()) == weights(undisturbed("emo"))


@pytest.mark.parametrize("form", ["pooled", "emo-paper"])
def test_killed_after_the_last_step_it_takes_no_other(
    tiny, undisturbed, tmp_path, monkeypatch, form
):
    """The trainer would take one more step, at a rate of zero, and add it to the history."""
    folder = tmp_path / "out"

    def run():
        distil(settings(form), inputs(tiny, form), [], tmp_path / "checks", folder)

    with monkeypatch.context() as patch:
        patch.setattr("emo.distil.save_trained", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            run()
    assert latest_sealed(checkpoints(tmp_path)).name == "checkpoint-6"
    run()
    assert weights(folder) == weights(undisturbed(form))
    expected = read_history(undisturbed(form) / "history.jsonl")
    assert read_history(folder / "history.jsonl") == expected


def test_a_result_without_its_student_is_not_finished(tiny, undisturbed, tmp_path):
    shutil.copytree(undisturbed("pooled"), tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "student")
    distil(settings("pooled"), inputs(tiny, "pooled"), [], tmp_path / "checks", tmp_path / "out")
    assert weights(tmp_path / "out") == weights(undisturbed("pooled"))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: (folder / "optimizer.pt").unlink(), "damaged: optimizer.pt"),
        (lambda folder: (folder / "rng_state.pth").unlink(), "damaged: rng_state.pth"),
        (lambda folder: (folder / "trainer_state.json").unlink(), "damaged: trainer_state.json"),
        (lambda folder: (folder / "seal.json").unlink(), "incomplete, the writing process was"),
        (
            lambda folder: (folder / "model.safetensors").write_bytes(
                (folder / "model.safetensors").read_bytes()[:-100]
            ),
            "damaged: model.safetensors",
        ),
    ],
)
def test_a_broken_checkpoint_is_skipped_by_name(
    undisturbed, interrupted, tmp_path, caplog, damage, said
):
    """transformers resumes silently without optimizer.pt, and then ends with other weights."""
    again = interrupted("emo", 5)
    damage(checkpoints(tmp_path) / "checkpoint-4")
    with caplog.at_level(logging.INFO):
        out = again()
    assert f"checkpoint-4: {said}" in caplog.text
    assert "checkpoint-2" in caplog.text.partition("resuming from")[2]
    assert weights(out) == weights(undisturbed("emo"))
    assert read_history(out / "history.jsonl") == read_history(undisturbed("emo") / "history.jsonl")


def test_projections_are_in_the_checkpoint(interrupted, tmp_path):
    """Pitfall 6: a head that lives in the loss alone starts anew on resume."""
    interrupted("emo", 3)
    names = load_file(checkpoints(tmp_path) / "checkpoint-2" / "model.safetensors").keys()
    assert {"student.model.2.linear.weight", "student.model.2.linear.bias"} <= names
    assert "method.space.state_centre" in names


def test_other_settings_do_not_go_on_from_old_checkpoints(interrupted, tmp_path, caplog):
    """Half a training with one weight and half with another would be neither."""
    again = interrupted("emo", 3)
    changed = settings("emo", method={"transport": 0.25})
    with caplog.at_level(logging.INFO):
        out = again(settings=changed)
    assert "resuming" not in caplog.text
    assert read_json(out / "training.json")["resumed_from_step"] == 0


def test_other_inputs_do_not_go_on_from_old_checkpoints(tiny, interrupted, tmp_path, caplog):
    again = interrupted("emo", 3)
    other = tmp_path / "other"
    shutil.copytree(tiny.student, other)
    record = read_json(other / "model.json") | {"weights_sha256": "0" * 64}
    (other / "model.json").write_text(json.dumps(record))
    with caplog.at_level(logging.INFO):
        again(inputs=inputs(tiny, "emo", student=other))
    assert "resuming" not in caplog.text


def test_a_finished_training_is_not_run_again(undisturbed, tiny, caplog):
    """A successor that waited for an orphan finds the work done."""
    out = undisturbed("emo")
    with caplog.at_level(logging.INFO):
        distil(settings(), inputs(tiny), [], out.parent / "checkpoints", out)
    assert "already finished by another process" in caplog.text
