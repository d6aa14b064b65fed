"""Wrong configs stop at once; the real one plans every stage."""

import shutil
from itertools import chain

import pytest

from .study_folder import REPO, StudyFolder, tiny_config

pytestmark = pytest.mark.workflow


def rename(mapping, old, new):
    mapping[new] = mapping.pop(old)


def misspelt_keys(config):
    rename(config["training"], "steps", "stepz")
    config["methods"]["emo"]["transprot"] = 2.0
    config["methods"]["pooled"]["form"] = "poled"
    config["training"]["batch_size"] = "eight"
    del config["teachers"]["tiny-teacher"]["source"]


def unknown_task(config):
    config["study"]["tasks"] = ["question"]


def unknown_method(config):
    config["study"]["compare"]["method"] = "emoo"


def missing_file(config):
    config["tasks"]["questions"]["source"]["path"] = "data/question.csv"


WRONG = {
    misspelt_keys: [
        "training.stepz: unknown key; did you mean `steps`?",
        "training.steps: missing",
        "methods.emo.transprot: unknown key; did you mean `transport`?",
        "methods.pooled: unknown ",
        "`poled`; did you mean `pooled`?",
        "training.batch_size: ",
        "teachers.tiny-teacher.source: missing",
    ],
    unknown_task: ["study.tasks: unknown name `question`; did you mean `questions`?"],
    unknown_method: ["study.compare: unknown name `emoo`; did you mean `emo`?"],
    missing_file: ["tasks.questions.source.path: data/question.csv does not exist"],
}


@pytest.mark.parametrize("spoil", WRONG, ids=lambda spoil: spoil.__name__)
def test_wrong_config_stops_with_the_key_and_a_hint(finished, tmp_path, spoil):
    config = tiny_config()
    spoil(config)
    folder = StudyFolder(tmp_path)
    for name in ("data", "models"):
        shutil.copytree(finished.path / name, tmp_path / name)
    outcome = folder.snakemake(config=config)
    assert outcome.code != 0
    for words in WRONG[spoil]:
        assert words in outcome.output
    assert "Traceback" not in outcome.output
    assert not (tmp_path / "resources").exists(), "something ran before the config was refused"


def test_real_config_plans_every_stage_in_an_empty_folder(tmp_path):
    outcome = StudyFolder(tmp_path).plan(config=REPO / "config.yaml")
    assert outcome.code == 0, outcome.output
    stages = [
        "fetch",
        "task",
        "texts",
        "align",
        "doctor",
        "teach_shard",
        "teach",
        "teach_rows_shard",
        "teach_rows",
        "distil",
        "evaluate",
        "aggregate",
    ]
    assert set(stages) <= set(outcome.jobs)
    assert outcome.jobs["fetch"] == 4
    assert not list(chain(tmp_path.glob("results"), tmp_path.glob("resources")))


def test_lint_finds_nothing(tmp_path):
    outcome = StudyFolder(tmp_path).snakemake("--lint", config=REPO / "config.yaml")
    assert outcome.code == 0, outcome.output
