"""What a study may say of a tuning, and which teachers it tunes on what."""

import json
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from emo.config import parse_study
from emo.config_tuning import FullTuning, LoraTuning
from emo.errors import ConfigError

CONFIG = yaml.safe_load((Path(__file__).parents[2] / "config.yaml").read_text())


def study(tuning, **texts):
    config = deepcopy(CONFIG)
    config["teachers"]["me5-small"]["tuning"] = tuning
    config["texts"] |= texts
    return config


def message(config):
    with pytest.raises(ConfigError) as caught:
        parse_study(config)
    return str(caught.value)


def test_the_defaults_of_both_kinds():
    lora = parse_study(study({"kind": "lora"})).teachers["me5-small"].tuning
    assert lora == LoraTuning(kind="lora")
    assert (lora.rank, lora.alpha, lora.dropout, lora.targets) == (16, 32, 0.1, [])
    full = parse_study(study({"kind": "full"})).teachers["me5-small"].tuning
    assert full == FullTuning(kind="full")
    assert lora.learning_rate > full.learning_rate
    assert lora.pairs == full.pairs == "apart", "the store holds single texts"


@pytest.mark.parametrize(
    ("tuning", "expected"),
    [
        ({}, "teachers.me5-small.tuning: needs the key 'kind'"),
        ({"kind": "lroa"}, "tuning: unknown 'kind' `lroa`; did you mean `lora`?"),
        ({"kind": "lora", "rnak": 4}, "teachers.me5-small.tuning.rnak: unknown key; did you mean"),
        ({"kind": "full", "rank": 4}, "teachers.me5-small.tuning.rank: unknown key"),
        ({"kind": "lora", "epochs": 0}, "teachers.me5-small.tuning.epochs: Input should be great"),
        ({"kind": "lora", "learning_rate": "1e-4"}, "write 1.0e-4 for 1e-4"),
        ({"kind": "full", "pairs": "together"}, "tuning.pairs: unknown value `together`"),
    ],
)
def test_a_fault_names_its_key(tuning, expected):
    assert expected in message(study(tuning))


def test_a_text_set_of_several_tasks_cannot_be_tuned_on():
    told = message(study({"kind": "lora"}, sentences={"tasks": ["stsb", "trec"]}))
    assert told == (
        "teachers.me5-small.tuning: a teacher is tuned on one task, but the text set `sentences` "
        "is made of stsb, trec; give each task a text set of its own, or leave `tuning` out"
    )


def test_only_chosen_teachers_and_text_sets_must_be_tunable():
    config = study({"kind": "lora"}, more={"tasks": ["stsb", "trec"]})
    assert parse_study(config)
    config["teachers"]["other"] = config["teachers"]["me5-small"]
    del config["teachers"]["me5-small"]["tuning"]
    config["texts"]["sentences"] = {"tasks": ["stsb", "trec"]}
    config["teachers"]["other"] = config["teachers"]["me5-small"] | {"tuning": {"kind": "full"}}
    assert parse_study(config)


def test_a_derived_task_shares_the_teacher_of_its_text_set():
    told = parse_study(study({"kind": "lora"}))
    assert told.tuned_on("me5-small", told.tasks["stsb-pairs"].texts) == "stsb"
    assert told.tuned_on("me5-small", "questions") == "trec"
    assert told.tuned_on("minilm-l3", "questions") is None, "students are not tuned"
    assert parse_study(CONFIG).tuned_on("me5-small", "questions") is None


def test_a_study_reads_back_from_its_own_dump():
    told = parse_study(study({"kind": "full", "epochs": 2}))
    assert parse_study(json.loads(json.dumps(told.model_dump(mode="json")))) == told


@pytest.mark.parametrize("name", ["tuned", "tuning"])
def test_its_folder_and_its_method_are_reserved(name):
    config = deepcopy(CONFIG)
    config["methods"][name] = {"form": "pooled"}
    assert message(config) == f"methods.{name}: the name `{name}` is reserved"
