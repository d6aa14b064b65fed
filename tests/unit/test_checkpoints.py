import json
import logging

import pytest

from emo.checkpoints import REQUIRED, discard_older, is_whole, latest_sealed, seal
from emo.errors import DataError


def write(folder, step, sealed=True):
    checkpoint = folder / f"checkpoint-{step}"
    checkpoint.mkdir(parents=True)
    for name in REQUIRED:
        (checkpoint / name).write_text(f"{name} of step {step}")
    if sealed:
        seal(checkpoint)
    return checkpoint


@pytest.fixture
def folder(tmp_path):
    """Whole checkpoints of steps 8 and 10: by name, 10 stands before 8."""
    write(tmp_path, 8)
    write(tmp_path, 10)
    return tmp_path


def test_the_newest_is_taken_by_number(folder):
    assert latest_sealed(folder).name == "checkpoint-10"


def test_none_without_checkpoints(tmp_path):
    assert latest_sealed(tmp_path) is None
    assert latest_sealed(tmp_path / "nowhere") is None


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("how", ["removed", "truncated", "changed"])
def test_a_broken_one_is_skipped_by_name(folder, caplog, name, how):
    """The trainer itself resumes without optimiser or random state and does not say so."""
    path = folder / "checkpoint-10" / name
    content = path.read_text()
    path.unlink()
    if how != "removed":
        path.write_text(content[:-1] if how == "truncated" else content[:-1] + "X")
    with caplog.at_level(logging.WARNING):
        assert latest_sealed(folder).name == "checkpoint-8"
    assert f"checkpoint-10: damaged: {name}; trying the one before" in caplog.text
    assert not (folder / "checkpoint-10").exists(), "it would be in the way of the next one"


def test_one_without_seal_was_interrupted(folder, caplog):
    write(folder, 12, sealed=False)
    assert latest_sealed(folder).name == "checkpoint-10"
    assert "checkpoint-12: incomplete, the writing process was interrupted" in caplog.text


def test_the_one_before_a_new_seal_is_kept(folder):
    """The newest may be broken later; a rotation before the seal could leave none that is whole."""
    discard_older(write(folder, 12))
    assert {path.name for path in folder.iterdir()} == {"checkpoint-10", "checkpoint-12"}


@pytest.mark.parametrize("content", ["", '{"model.safe', "\xff"])
def test_a_damaged_seal_seals_nothing(folder, caplog, content):
    (folder / "checkpoint-10" / "seal.json").write_text(content, encoding="latin-1")
    assert latest_sealed(folder).name == "checkpoint-8"
    assert "its seal.json is damaged" in caplog.text


def test_none_is_left_when_all_are_broken(folder):
    for checkpoint in folder.glob("checkpoint-*"):
        (checkpoint / "optimizer.pt").unlink()
    assert latest_sealed(folder) is None
    assert list(folder.iterdir()) == []


def test_other_names_are_left_alone(folder):
    (folder / "checkpoint-old").mkdir()
    (folder / "history.jsonl").write_text("")
    assert latest_sealed(folder).name == "checkpoint-10"
    assert (folder / "checkpoint-old").is_dir()


def test_sealing_an_incomplete_one_is_refused(tmp_path):
    checkpoint = write(tmp_path, 2, sealed=False)
    (checkpoint / "optimizer.pt").unlink()
    (checkpoint / "scheduler.pt").unlink()
    with pytest.raises(DataError, match="written without optimizer.pt, scheduler.pt"):
        seal(checkpoint)


def test_the_seal_names_every_file(tmp_path):
    checkpoint = write(tmp_path, 2, sealed=False)
    (checkpoint / "training_args.bin").write_text("x")
    seal(checkpoint)
    assert set(json.loads((checkpoint / "seal.json").read_text())) == {
        *REQUIRED,
        "training_args.bin",
    }


def test_the_best_is_kept_however_old(folder):
    discard_older(write(folder, 12), best=8)
    assert {path.name for path in folder.iterdir()} == {
        "checkpoint-8",
        "checkpoint-10",
        "checkpoint-12",
    }
    discard_older(write(folder, 14), best=14)
    assert {path.name for path in folder.iterdir()} == {"checkpoint-12", "checkpoint-14"}


def test_whole_is_sealed_and_undamaged(folder):
    whole = folder / "checkpoint-10"
    assert is_whole(whole)
    (whole / "model.safetensors").write_text("changed")
    assert not is_whole(whole)
    assert not is_whole(write(folder, 12, sealed=False))
    assert not is_whole(folder / "checkpoint-99")
