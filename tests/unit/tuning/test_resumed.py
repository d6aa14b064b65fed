"""Tunings that are killed and started again: they end as if nothing had happened."""

import logging
import shutil

import pytest

from emo.checkpoints import latest_sealed
from emo.outputs import read_json
from emo.tuning import tune
from emo.tuning.trainer import TuningTrainer

from .conftest import settings


class Killed(BaseException):
    """Ends a tuning at a step, as a signal would."""


@pytest.fixture
def killed(inputs, tmp_path):
    """Kill a tuning once so many steps are done, and return how to run it again."""

    def killed(family, kind, step):
        def again(**changes):
            chosen = settings(kind, **changes)
            tune(chosen, inputs(family), [], tmp_path / "checks", tmp_path / "out")
            return tmp_path / "out"

        usual = TuningTrainer.compute_loss

        def compute_loss(trainer, *args, **kwargs):
            if trainer.state.global_step == step:
                raise Killed
            return usual(trainer, *args, **kwargs)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TuningTrainer, "compute_loss", compute_loss)
            with pytest.raises(Killed):
                again()
        return again

    return killed


def checkpoints(tmp_path):
    (folder,) = (path for path in (tmp_path / "checks").iterdir() if path.is_dir())
    return folder


def content(out):
    """All that a tuning leaves and that must not depend on interruptions."""
    files = [*out.rglob("*.safetensors"), out / "history.jsonl"]
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


@pytest.mark.parametrize(
    ("family", "kind", "step", "last"),
    [("sts", "full", 2, 0), ("classification", "lora", 7, 5), ("sts", "full", 10, 8)],
)
def test_a_resumed_tuning_ends_as_an_undisturbed_one(
    tuned, killed, caplog, family, kind, step, last
):
    """Pitfalls 89 and 91: adapters, head, optimiser, order and dropout all go on."""
    again = killed(family, kind, step)
    with caplog.at_level(logging.INFO):
        out = again()
    assert ("resuming from" in caplog.text) == (last > 0)
    assert read_json(out / "tuning.json")["resumed_from_step"] == last
    assert content(out) == content(tuned(family, kind))


@pytest.mark.parametrize("damaged", [False, True])
def test_killed_after_the_last_step_it_ends_with_the_best_epoch(
    inputs, tuned, tmp_path, monkeypatch, caplog, damaged
):
    """The best is an older one: without it, the weights of the last must not stay."""

    def run():
        tune(settings(), inputs("classification"), [], tmp_path / "checks", tmp_path / "out")

    with monkeypatch.context() as patch:
        patch.setattr("emo.tuning.stage.save_trained", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run()
    folder = checkpoints(tmp_path)
    assert latest_sealed(folder) == folder / "checkpoint-15"
    if damaged:
        (folder / "checkpoint-10" / "model.safetensors").write_bytes(b"damaged")
    with caplog.at_level(logging.INFO):
        run()
    assert ("checkpoint-10, its best epoch, is damaged" in caplog.text) == damaged
    assert read_json(tmp_path / "out" / "tuning.json")["resumed_from_step"] == 15 * (not damaged)
    assert content(tmp_path / "out") == content(tuned("classification"))


def test_other_settings_do_not_go_on_from_old_checkpoints(killed, caplog):
    again = killed("sts", "full", 6)
    with caplog.at_level(logging.INFO):
        out = again(epochs=1)
    assert "resuming" not in caplog.text
    assert read_json(out / "tuning.json")["resumed_from_step"] == 0


def test_a_finished_tuning_is_not_run_again(inputs, tuned, caplog):
    """A successor that waited for an orphan finds the work done."""
    out = tuned("classification")
    with caplog.at_level(logging.INFO):
        tune(settings(), inputs("classification"), [], out.parent / "checkpoints", out)
    assert "already finished by another process" in caplog.text


def test_a_result_without_its_model_is_not_finished(inputs, tuned, tmp_path):
    shutil.copytree(tuned("sts"), tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / "model")
    tune(settings(), inputs("sts"), [], tmp_path / "checks", tmp_path / "out")
    assert content(tmp_path / "out") == content(tuned("sts"))
