"""What a study with labelled text sets must say."""

from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from emo.config import parse_study
from emo.errors import ConfigError
from emo.jobs import asked_head

CONFIG = yaml.safe_load((Path(__file__).parents[2] / "config.yaml").read_text())


def study(*, methods=None, tuning=None, tasks=("trec", "stsb"), **texts):
    """The default study with a labelled text set for each task."""
    config = deepcopy(CONFIG)
    for task in tasks:
        config["tasks"][task]["texts"] = f"{task}-rows"
        config["texts"][f"{task}-rows"] = {"tasks": [task], "labelled": True}
    config["texts"] |= texts
    config["methods"] = {"sft": {"form": "pooled", "task": 1.0}} if methods is None else methods
    config["teachers"]["me5-small"] |= {} if tuning is None else {"tuning": tuning}
    chosen = list(config["methods"])
    config["study"] |= {"tasks": list(tasks), "methods": chosen}
    config["study"]["compare"] = {"method": chosen[0], "baseline": chosen[0]}
    return config


def message(config):
    with pytest.raises(ConfigError) as caught:
        parse_study(config)
    return str(caught.value)


JOINT, APART = {"kind": "lora", "pairs": "joint"}, {"kind": "lora"}
LOGIT = {"logit": {"form": "pooled", "logits": 1.0}}


def test_a_tuned_teacher_has_a_head_on_labelled_sets_alone():
    parsed = parse_study(study(methods=LOGIT, tuning=JOINT))
    assert asked_head(parsed, "me5-small", "trec-rows") == (
        "results/me5-small/tuned/trec-rows/tuning.json"
    )
    assert asked_head(parsed, "me5-small", "questions") is None
    assert asked_head(parsed, "minilm-l3", "trec-rows") is None
    assert asked_head(parse_study(study()), "me5-small", "trec-rows") is None
    assert parse_study(study(methods=LOGIT, tuning=APART, tasks=["trec"])), "no pairs, no reading"


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (
            study(methods={"pooled": {"form": "pooled"}}),
            "methods.pooled.task: the text set `stsb-rows` is labelled, and without `task` or "
            "`logits` the student's head would stay random",
        ),
        (
            study(methods=LOGIT),
            "methods.logit.logits: the teacher `me5-small` has no head that could be asked; give "
            "`teachers.me5-small` a `tuning`",
        ),
        (
            study(tuning=APART),
            "teachers.me5-small.tuning.pairs: the text set `stsb-rows` is labelled, and its "
            "students read the two texts of a row as one sequence; set it to joint",
        ),
        (
            study(methods=LOGIT, tuning=JOINT, **{"stsb-rows": {"tasks": ["stsb"]}}),
            "methods.logit.logits: the text set `stsb-rows` has no labels",
        ),
        (
            study(**{"stsb-rows": {"tasks": ["trec"], "labelled": True}}),
            "tasks.stsb.texts: the text set `stsb-rows` has the labels of trec, whose head cannot "
            "answer stsb",
        ),
        (
            study(**{"stsb-rows": {"tasks": ["stsb", "trec"], "labelled": True}}),
            "texts.stsb-rows: `labelled` keeps the labels of one task; name one in `tasks`",
        ),
        (
            study(**{"stsb-rows": {"tasks": ["stsb"], "labelled": True, "limit": 5}}),
            "texts.stsb-rows: `limit` is for texts without labels; give the task a `train_fract",
        ),
    ],
)
def test_a_fault_names_its_key_and_the_way_out(config, told):
    assert told in message(config)


def test_a_derived_task_cannot_share_a_labelled_set():
    config = study(tasks=["stsb"])
    config["tasks"]["stsb-pairs"]["texts"] = "stsb-rows"
    assert message(config).startswith("tasks.stsb-pairs.texts: the text set `stsb-rows` has the")
