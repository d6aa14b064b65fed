"""Trainings with an asked teacher: as those from the store, resumed to the bit, refused by name."""

import shutil

import pytest
from safetensors.torch import load_file

from emo.distil import _digests, distil
from emo.errors import ConfigError, DataError
from emo.history import read_history
from emo.outputs import read_json, write_json

from .tiny_online import online_inputs
from .tiny_training import FORMS, inputs, killed_at, settings, weights


def train(given, folder, form="emo"):
    distil(settings(form), given, [], folder / "checks", folder / "out")
    return folder / "out"


@pytest.fixture(scope="module")
def online(tiny, tmp_path_factory):
    """An undisturbed online training of each form, made once."""
    made = {}

    def run(form):
        if form not in made:
            made[form] = train(online_inputs(tiny, form), tmp_path_factory.mktemp(form), form)
        return made[form]

    return run


@pytest.mark.parametrize("form", FORMS)
def test_the_history_is_that_of_a_training_from_the_store(online, undisturbed, form):
    one, other = (read_history(out / "history.jsonl") for out in (online(form), undisturbed(form)))
    assert [record["step"] for record in one] == [record["step"] for record in other]
    for record, expected in zip(one, other, strict=True):
        assert record["counts"] == expected["counts"]
        assert record["loss"] == pytest.approx(expected["loss"], abs=1e-4)
        for name, value in expected["terms"].items():
            assert record["terms"][name] == pytest.approx(value, abs=1e-4), name
        for name, value in expected.get("gradient_norms", {}).items():
            assert record["gradient_norms"][name] == pytest.approx(value, rel=1e-3, abs=1e-4), name


@pytest.mark.parametrize(("form", "step"), [("emo", 3), ("emo-paper", 5)])
def test_a_resumed_online_training_ends_as_an_undisturbed_one(tiny, online, tmp_path, form, step):
    with killed_at(step):
        train(online_inputs(tiny, form), tmp_path, form)
    out = train(online_inputs(tiny, form), tmp_path, form)
    assert read_json(out / "training.json")["resumed_from_step"] == step - 1
    assert weights(out) == weights(online(form))
    assert read_history(out / "history.jsonl") == read_history(online(form) / "history.jsonl")


def test_the_teacher_is_in_no_checkpoint(tiny, tmp_path):
    """Pitfall 93, and a teacher may be larger than the disk is free."""
    for name, given in (("online", online_inputs(tiny)), ("stored", inputs(tiny))):
        with killed_at(3):
            train(given, tmp_path / name)
    online, stored = (
        load_file(next((tmp_path / name / "checks").glob("*/checkpoint-2/model.safetensors")))
        for name in ("online", "stored")
    )
    assert online.keys() == stored.keys()
    assert all(online[name].shape == stored[name].shape for name in online)


def test_an_online_training_does_not_go_on_from_a_stored_one(tiny, tmp_path, caplog):
    """They agree to rounding, and a training is one or the other."""
    with killed_at(3):
        train(inputs(tiny), tmp_path)
    with caplog.at_level("INFO"):
        train(online_inputs(tiny), tmp_path)
    assert "resuming" not in caplog.text


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"teacher": None}, "needs the teacher, since its store holds no token states; give --te"),
        ({"row_alignment": None}, "map that attention rows are selected from; give --row-align"),
        ({"alignment": None}, "needs an alignment; give --alignment"),
    ],
)
def test_what_is_missing_is_named_with_its_option(tiny, tmp_path, changes, told):
    with pytest.raises(ConfigError, match=told):
        train(online_inputs(tiny, **changes), tmp_path)


def test_options_of_the_other_way_are_refused(tiny, tmp_path):
    """Ignored, they would let a user believe in a way that was not gone."""
    rows = inputs(tiny).rows
    with pytest.raises(ConfigError, match="holds no token states.*leave out --rows and give --te"):
        train(online_inputs(tiny, rows=rows), tmp_path)
    with pytest.raises(ConfigError, match="holds the teacher's token states; leave out --teacher"):
        train(inputs(tiny, teacher=tiny.teacher), tmp_path)


@pytest.mark.parametrize("name", ["teacher", "row_alignment"])
def test_a_file_that_is_not_there_is_named(tiny, tmp_path, name):
    with pytest.raises(DataError, match="nowhere.*: not there; run the stage that makes it first"):
        train(online_inputs(tiny, **{name: tmp_path / "nowhere"}), tmp_path)


def test_another_teacher_is_refused(tiny, tmp_path):
    teacher = shutil.copytree(tiny.teacher, tmp_path / "teacher")
    record = read_json(teacher / "model.json")
    write_json(teacher / "model.json", record | {"weights_sha256": "0" * 64})
    with pytest.raises(DataError, match=r"signals of another teacher than .*/teacher; give that"):
        train(online_inputs(tiny, teacher=teacher), tmp_path)


def test_a_teacher_that_reads_otherwise_is_refused(tiny, tmp_path):
    """Its record is the same, and its positions would be others."""
    teacher = shutil.copytree(tiny.teacher, tmp_path / "teacher")
    loading = teacher / "sentence_bert_config.json"
    write_json(loading, read_json(loading) | {"max_seq_length": 12})
    with pytest.raises(DataError, match=r"/teacher: reads texts otherwise than when .* was made"):
        train(online_inputs(tiny, teacher=teacher), tmp_path)


def test_rows_from_another_map_are_refused(tiny, tmp_path):
    other = tiny.alignment("mined-types.normalised")
    with pytest.raises(DataError, match="made with method 'mined-types' instead of 'mined'"):
        train(online_inputs(tiny, row_alignment=other), tmp_path)


def test_the_identity_of_a_training_follows_teacher_and_row_map(tiny, tmp_path):
    """Their names do not count, their contents do."""
    teacher = shutil.copytree(tiny.teacher, tmp_path / "teacher")
    digests = _digests(online_inputs(tiny))
    assert _digests(online_inputs(tiny, teacher=teacher)) == digests
    record = read_json(teacher / "model.json")
    write_json(teacher / "model.json", record | {"weights_sha256": "0" * 64})
    other = tiny.alignment("mined-types.normalised")
    for name, path in (("teacher", teacher), ("row_alignment", other), ("store", tiny.store)):
        changed = _digests(online_inputs(tiny, **{name: path}))
        assert [key for key in digests if changed[key] != digests[key]] == [name]
