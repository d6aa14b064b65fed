"""A teacher that is tuned on a task before it teaches, through Snakemake."""

import re
from pathlib import Path

import pytest
import yaml
from mlflow import MlflowClient
from snakemake.utils import update_config

from emo.outputs import read_json

from .study_folder import REPO, StudyFolder, tiny_config
from .tiny_data import write_study

pytestmark = pytest.mark.workflow

TEACHER = "tuned-teacher"
OUT = f"results/{TEACHER}/tuned/question-texts"
HALF = f"results/{TEACHER}/tuned/questions-half-rows"
STORE = f"results/{TEACHER}/store/questions-half-rows/store.json"
SCORES = (
    f"results/reference/{TEACHER}/questions-half/scores.json",
    f"results/{TEACHER}/tiny-student/questions-half/logit/seed1/scores.json",
)


def tuned_config():
    """The tiny study with a teacher beside its own, tuned on a text set of one task."""
    config = tiny_config()
    tuning = {"kind": "lora", "epochs": 2, "batch_size": 8, "learning_rate": 3.0e-3}
    config["teachers"][TEACHER] = config["teachers"]["tiny-teacher"] | {"tuning": tuning}
    config["texts"]["question-texts"] = {"tasks": ["questions"]}
    config["texts"]["pair-texts"] = {"tasks": ["sentences"]}
    config["tasks"]["questions"]["texts"] = "question-texts"
    for task in ("sentences", "sentence-pairs"):
        config["tasks"][task]["texts"] = "pair-texts"
    config["study"] |= {"teachers": [TEACHER], "methods": ["pooled", "emo"]}
    return config


def labelled_config():
    """The same teacher and its students on labelled rows, at half and at all of the labels."""
    config = tuned_config()
    config["tasks"]["questions-half"] = config["tasks"]["questions"] | {"train_fraction": 0.5}
    for task in ("questions", "questions-half", "sentences"):
        config["tasks"][task]["texts"] = f"{task}-rows"
        config["texts"][f"{task}-rows"] = {"tasks": [task], "labelled": True}
    config["teachers"][TEACHER]["tuning"]["pairs"] = "joint"
    labels = {"form": "pooled", "cosine": 0.0, "relational": 0.0, "task": 1.0}
    config["methods"] = {"sft": labels, "logit": labels | {"logits": 1.0}}
    config["study"] |= {
        "tasks": ["questions", "questions-half", "sentences"],
        "methods": ["sft", "logit"],
        "compare": {"method": "logit", "baseline": "sft"},
    }
    return config


def tuned_record(task):
    return f"results/{TEACHER}/tuned/{task}-rows/tuning.json"


@pytest.fixture
def fresh(tmp_path):
    """The tiny study's data and models, and nothing made of them."""
    write_study(tmp_path)
    return StudyFolder(tmp_path)


def commands(plan, stage):
    """The planned commands of a stage, as lists of words."""
    found = re.findall(rf"python -m emo {stage} (.*?) --log ", plan.output, flags=re.DOTALL)
    return [command.replace("\\", "").split() for command in found]


def test_whatever_reads_the_teacher_reads_the_tuned_one(fresh):
    plan = fresh.plan("--printshellcmds", config=tuned_config())
    assert plan.code == 0, plan.output
    assert plan.jobs["tune"] == plan.jobs["doctor_tuned"] == 2
    assert "doctor" not in plan.jobs, "the teacher as it was teaches nobody"
    tasks = {"question-texts": "questions", "pair-texts": "sentences"}
    models = {texts: f"results/{TEACHER}/tuned/{texts}/model" for texts in tasks}
    for words in commands(plan, "tune"):
        (texts,) = (texts for texts in tasks if f"results/{TEACHER}/tuned/{texts}" in words)
        assert words[:3] == [
            f"resources/models/{TEACHER}",
            "--task",
            f"resources/tasks/{tasks[texts]}",
        ]
        assert words.count("--unseen=resources/tasks/sentence-pairs") == 1
    for stage in ("align", "teach", "teach-rows"):
        for words in commands(plan, stage):
            texts = Path(words[0]).stem
            assert words[words.index("--teacher") + 1] == models[texts], stage
    assert sorted(words[0] for words in commands(plan, "doctor")) == sorted(models.values())
    judged = {
        words[words.index("--task") + 1]: words[0]
        for words in commands(plan, "evaluate")
        if TEACHER in words[0] and "tiny-student" not in words[0]
    }
    assert judged == {
        "resources/tasks/questions": models["question-texts"],
        "resources/tasks/sentences": models["pair-texts"],
        "resources/tasks/sentence-pairs": models["pair-texts"],
    }


def test_a_training_that_asks_the_teacher_itself_asks_the_tuned_one(fresh):
    config = tuned_config()
    config["teachers"][TEACHER]["store"] = {"states": "online"}
    config["study"] |= {"tasks": ["questions"], "methods": ["emo"]}
    config["study"]["compare"] = {"method": "emo", "baseline": "emo"}
    plan = fresh.plan("--printshellcmds", config=config)
    assert plan.code == 0, plan.output
    (words,) = commands(plan, "distil")
    assert f"--teacher={OUT}/model" in words


def test_a_teacher_is_tuned_examined_stored_judged_and_tracked_and_its_student_learns(fresh):
    """On labelled rows, where both answer with their heads."""
    config = labelled_config()
    config["study"]["tasks"] = ["questions-half"]
    config["training"]["steps"] = 10
    targets = (f"{HALF}/doctor.json", *SCORES, "--set-scatter", "teach=1")
    outcome = fresh.snakemake(*targets, config=config)
    assert outcome.code == 0, outcome.output
    assert outcome.jobs["tune"] == outcome.jobs["doctor_tuned"] == outcome.jobs["teach_shard"] == 1
    model = read_json(fresh.path / HALF / "model" / "model.json")
    assert model["tuned"]["task"] == "questions-half"
    examined = read_json(fresh.path / HALF / "doctor.json")
    assert examined["teacher"]["weights_sha256"] == model["weights_sha256"]
    assert read_json(fresh.path / STORE)["identity"]["teacher"] == model
    teacher, student = (read_json(fresh.path / path) for path in SCORES)
    assert teacher["model"]["name"] == f"{HALF}/model"
    assert teacher["model"]["weights_sha256"] == model["weights_sha256"]
    assert teacher["judged_by"] == student["judged_by"] == "head"
    metrics = {"macro_f1", "accuracy", "macro_precision", "macro_recall"}
    assert teacher["metrics"].keys() == student["metrics"].keys() == metrics
    rows = read_json(fresh.path / HALF / "tuning.json")["rows"]["train"]
    texts = read_json(fresh.path / "resources/texts/questions-half-rows.json")["texts"]
    assert rows == texts == student["splits"]["train"], "both learn the same half"
    assert not list(fresh.path.glob("checkpoints/**/checkpoint-*"))
    client = MlflowClient(f"sqlite:///{fresh.path}/results/mlflow.db")
    experiment = client.get_experiment_by_name("emo").experiment_id
    (run,) = client.search_runs([experiment], "tags.`emo.method` = 'tuning'")
    assert (run.info.status, run.data.tags["emo.teacher"]) == ("FINISHED", TEACHER)
    log = (fresh.path / "logs" / "tune" / TEACHER / "questions-half-rows.log").read_text()
    assert "best by validation: epoch " in log

    again = fresh.plan(*targets, config=config)
    assert again.nothing_to_do, again.output
    config["methods"]["logit"]["logit_temperature"] = 1.0
    other = fresh.plan(*targets, config=config).jobs
    assert other == {"distil": 1, "student": 1, "evaluate": 1}
    config["teachers"][TEACHER]["tuning"]["rank"] = 2
    other = fresh.plan(*targets, config=config).jobs
    assert (other["tune"], other["doctor_tuned"], other["teach_shard"]) == (1, 1, 1)
    assert "model" not in other, "the teacher itself is the same"


def test_heads_are_asked_for_where_there_are_some(fresh):
    plan = fresh.plan("--printshellcmds", config=labelled_config())
    assert plan.code == 0, plan.output
    tuned = f"results/{TEACHER}/tuned"
    for words in commands(plan, "distil"):
        texts, out = Path(words[0]).stem, words[words.index("--out") + 1]
        asked = f"--tuning={tuned}/{texts}/tuning.json"
        assert (asked in words) == ("/logit/" in out), "sft asks no teacher"
    judged = commands(plan, "evaluate")
    assert len(judged) == 3 * (2 + 2)
    for words in judged:
        heads = [word for word in words if word.startswith("--head=")]
        task = Path(words[words.index("--task") + 1]).name
        out = words[words.index("--out") + 1]
        expected = {
            "resources/models/tiny-student": [],
            f"{tuned}/{task}-rows/model": [f"--head={tuned}/{task}-rows/tuning.json"],
        }
        method = Path(out).parts[-2]
        trained = f"results/{TEACHER}/tiny-student/trained/{task}-rows/{method}/seed1"
        assert heads == expected.get(words[0], [f"--head={trained}/task_head.json"])


def test_trials_of_a_search_answer_with_their_own_heads(fresh):
    config = labelled_config()
    config["study"]["tasks"] = ["questions"]
    config["search"] = {"learning_rate": [1.0e-5, 1.0e-3], "seed": 7}
    plan = fresh.plan("--printshellcmds", config=config)
    assert plan.code == 0, plan.output
    assert sum(f"--tuning={tuned_record('questions')}" in w for w in commands(plan, "distil")) == 3
    outs = {words[words.index("--out") + 1]: words for words in commands(plan, "evaluate")}
    trials = {Path(out): words for out, words in outs.items() if "/search/" in out}
    assert len(trials) == 4
    for out, words in trials.items():
        assert f"--head={out.parent / 'task_head.json'}" in words


def test_a_text_set_of_two_tasks_stops_the_run(fresh):
    config = tuned_config()
    config["tasks"]["questions"]["texts"] = "all-texts"
    outcome = fresh.plan(config=config)
    assert outcome.code != 0
    assert f"teachers.{TEACHER}.tuning: a teacher is tuned on one task" in outcome.output
    assert "Traceback" not in outcome.output


def test_the_example_plans_both_teachers(tmp_path):
    config = yaml.safe_load((REPO / "config.yaml").read_text())
    update_config(config, yaml.safe_load((REPO / "configs" / "tuned-teacher.yaml").read_text()))
    plan = StudyFolder(tmp_path).plan(config=config)
    assert plan.code == 0, plan.output
    assert (plan.jobs["tune"], plan.jobs["doctor_tuned"], plan.jobs["doctor"]) == (2, 2, 1)
