from pathlib import Path

import pytest
import yaml

from emo.config import parse_study
from emo.run_tags import RunKey
from emo.runs import reference_folder, reference_runs, study_runs, training_runs, tuning_runs

CONFIG = yaml.safe_load((Path(__file__).parents[2] / "config.yaml").read_text())


@pytest.fixture
def study():
    chosen = CONFIG["study"] | {"seeds": [1, 2]}
    return parse_study(CONFIG | {"study": chosen})


def test_every_run_once(study):
    """Per task the two references, then each method with each seed."""
    runs = study_runs(study)
    assert len(runs) == len({run.key for run in runs}) == 3 * (2 + 3 * 2)
    assert [run.key.method for run in runs[:8]] == [
        "teacher",
        "undistilled",
        *["pooled"] * 2,
        *["emo-paper"] * 2,
        *["emo"] * 2,
    ]


def test_folders_are_those_of_the_contract(study):
    folders = {run.key: run.folder for run in study_runs(study)}
    emo = RunKey("me5-small", "minilm-l3", "stsb", "emo", 2)
    assert folders[emo] == "results/me5-small/minilm-l3/stsb/emo/seed2"
    teacher = RunKey("me5-small", "minilm-l3", "trec", "teacher", 0)
    assert folders[teacher] == reference_folder("me5-small", "trec")
    undistilled = RunKey("me5-small", "minilm-l3", "trec", "undistilled", 0)
    assert folders[undistilled] == "results/reference/minilm-l3/trec"


def test_an_entry_names_its_files(study):
    entry = study_runs(study)[2].entry()
    assert entry == {
        "teacher": "me5-small",
        "student": "minilm-l3",
        "task": "trec",
        "method": "pooled",
        "seed": 1,
        "family": "classification",
        "scores": "results/me5-small/minilm-l3/trec/pooled/seed1/scores.json",
        "predictions": "results/me5-small/minilm-l3/trec/pooled/seed1/predictions.parquet",
    }


def test_one_training_serves_every_task_on_its_texts(study):
    keys = training_runs(study, "me5-small", "minilm-l3", "sentences", "emo", 1)
    assert keys == [
        RunKey("me5-small", "minilm-l3", task, "emo", 1) for task in ("stsb", "stsb-pairs")
    ]


def test_tasks_that_are_not_chosen_have_no_runs():
    chosen = CONFIG["study"] | {"tasks": ["stsb"]}
    study = parse_study(CONFIG | {"study": chosen})
    assert {run.key.task for run in study_runs(study)} == {"stsb"}
    keys = training_runs(study, "me5-small", "minilm-l3", "sentences", "emo", 1)
    assert [key.task for key in keys] == ["stsb"]


def test_one_evaluation_of_a_teacher_serves_all_its_students():
    """The teacher's scores do not depend on the student, its rows in the tables do."""
    students = CONFIG["students"] | {"other": CONFIG["students"]["minilm-l3"]}
    chosen = CONFIG["study"] | {"students": ["minilm-l3", "other"]}
    study = parse_study(CONFIG | {"students": students, "study": chosen})
    keys = reference_runs(study, "me5-small", "trec")
    assert [(key.student, key.method) for key in keys] == [
        ("minilm-l3", "teacher"),
        ("other", "teacher"),
    ]
    assert [key.student for key in reference_runs(study, "other", "trec")] == ["other"]


def test_a_tuning_is_a_run_without_a_student():
    tuned = CONFIG["teachers"]["me5-small"] | {"tuning": {"kind": "lora", "seed": 7}}
    study = parse_study(CONFIG | {"teachers": {"me5-small": tuned}})
    keys = tuning_runs(study, "me5-small", "sentences")
    assert keys == [RunKey("me5-small", "-", "stsb", "tuning", 7)]
    assert not set(keys) & {run.key for run in study_runs(study)}, "no run of the report"
    assert tuning_runs(parse_study(CONFIG), "me5-small", "sentences") == []
