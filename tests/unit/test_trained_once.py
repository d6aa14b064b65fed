"""Which trainings are run, and which are found done."""

import logging

import pytest

from emo.errors import DataError
from emo.outputs import write_json
from emo.trained_once import input_digests, train_once


@pytest.fixture
def train(tmp_path):
    """Run a training that writes its record and, if asked, its weights; note the runs."""
    out, ran = tmp_path / "out", []

    def train(identity, weights=True):
        def work(folder):
            folder.mkdir(parents=True)
            (folder / "checkpoint").touch()
            write_json(out / "training.json", {"identity": identity})
            if weights:
                (out / "weights").touch()
            ran.append(identity)

        record = out / "training.json"
        train_once(identity, tmp_path / "checks", record, out / "weights", work)
        assert not (tmp_path / "checks" / identity).exists(), "emptied after a good end"
        return ran

    return train


def test_what_is_finished_is_not_run_again(train, caplog):
    train("one")
    with caplog.at_level(logging.INFO):
        assert train("one") == ["one"]
    assert "out: already finished by another process" in caplog.text


def test_another_identity_or_missing_weights_are_not_finished(train):
    train("one", weights=False)
    assert train("one") == ["one", "one"]
    assert train("two") == ["one", "one", "two"]


def test_checkpoints_of_a_failed_training_stay(tmp_path):
    def fail(folder):
        folder.mkdir(parents=True)
        raise DataError("no")

    with pytest.raises(DataError, match="no"):
        train_once("one", tmp_path / "checks", tmp_path / "r.json", tmp_path / "w", fail)
    assert (tmp_path / "checks" / "one").is_dir()


def test_digests_follow_the_content_and_name_what_is_not_there(tmp_path):
    (tmp_path / "a").write_text("x")
    before = input_digests({"a": tmp_path / "a", "b": None})
    assert before["b"] is None
    (tmp_path / "a").write_text("y")
    assert input_digests({"a": tmp_path / "a"})["a"] != before["a"]
    with pytest.raises(DataError, match="nowhere: not there; run the stage that makes it first"):
        input_digests({"a": tmp_path / "nowhere"})
