"""What a finished study holds."""

import csv
import json
from collections import Counter
from itertools import product

import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer

from .study_folder import tiny_config
from .tiny_data import BLANK_QUESTIONS, BLANK_TRAIN_PAIR, LEAKED, TESTED

pytestmark = pytest.mark.workflow

COLUMNS = [
    *("teacher", "student", "task", "family", "method", "seed", "metric", "score", "main"),
    "validation",
]
METHODS = {"teacher": "0", "undistilled": "0", "pooled": "1", "emo-paper": "1", "emo": "1"}
FAMILIES = {"questions": "classification", "sentences": "sts", "sentence-pairs": "pairs"}
TRAINED = "results/tiny-teacher/tiny-student"
LOCAL_RULES = {"all", "fetch", "student", "aggregate"}


@pytest.fixture(scope="module")
def summary(finished):
    with (finished.path / "results" / "summary.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def read(finished, path):
    return json.loads((finished.path / path).read_text())


def test_summary_has_the_columns_of_the_contract_and_every_run(summary):
    assert list(summary[0]) == COLUMNS
    assert {(row["teacher"], row["student"]) for row in summary} == {
        ("tiny-teacher", "tiny-student")
    }
    runs = {(row["task"], row["family"], row["method"], row["seed"]) for row in summary}
    assert runs == {
        (task, FAMILIES[task], method, seed)
        for task, (method, seed) in product(FAMILIES, METHODS.items())
    }


def test_one_metric_of_each_run_is_the_main_one(summary):
    main = Counter(
        (row["task"], row["method"], row["seed"]) for row in summary if row["main"] == "True"
    )
    assert main == Counter({(t, m, s): 1 for t, (m, s) in product(FAMILIES, METHODS.items())})
    assert {row["main"] for row in summary} == {"True", "False"}
    assert all(np.isfinite(float(row["score"])) for row in summary)


def test_report_and_figure_are_there(finished):
    report = (finished.path / "results" / "report.md").read_text()
    for words in (
        "Differences from pooled",
        "Differences from the undistilled student",
        "60 x 8",
        "one seed",
    ):
        assert words in report
    figures = finished.path / "results" / "figures"
    assert (figures / "score_speed.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (figures / "score_speed.svg").read_text()


@pytest.mark.parametrize("method", ["pooled", "emo-paper", "emo"])
def test_student_loads_by_its_path_and_gives_the_score_again(finished, summary, method):
    folder = f"{TRAINED}/sentences/{method}/seed1"
    student = SentenceTransformer(str(finished.path / folder / "student"), device="cpu")
    assert student.max_seq_length == tiny_config()["students"]["tiny-student"]["max_length"]
    test = pd.read_parquet(finished.path / "resources" / "tasks" / "sentences" / "test.parquet")
    one, other = (student.encode(list(test[name])) for name in ("sentence1", "sentence2"))
    cosines = (one * other).sum(axis=1)
    predicted = pd.read_parquet(finished.path / folder / "predictions.parquet")["predicted"]
    np.testing.assert_allclose(cosines, predicted, atol=1e-5)
    score = next(
        float(row["score"])
        for row in summary
        if (row["task"], row["method"], row["main"]) == ("sentences", method, "True")
    )
    assert spearmanr(cosines, test["score"]).statistic == pytest.approx(score, abs=1e-6)


def test_methods_trained_different_students_and_tasks_share_one(finished):
    weights = {
        (task, method): (
            finished.path / f"{TRAINED}/{task}/{method}/seed1/student/model.safetensors"
        ).read_bytes()
        for task, method in product(FAMILIES, ("pooled", "emo-paper", "emo"))
    }
    assert len(set(weights.values())) == 3
    assert weights["questions", "emo"] == weights["sentences", "emo"]


def test_blank_training_rows_are_counted_with_their_numbers(finished):
    questions = read(finished, "resources/tasks/questions/report.json")
    assert questions["unusable"] == {"all": list(BLANK_QUESTIONS)}
    for task in ("sentences", "sentence-pairs"):
        report = read(finished, f"resources/tasks/{task}/report.json")
        assert report["unusable"] == {"train": [BLANK_TRAIN_PAIR], "validation": [], "test": []}
        log = (finished.path / "logs" / "task" / f"{task}.log").read_text()
        assert f"rows {BLANK_TRAIN_PAIR}\n" in log


def test_hard_texts_are_trained_on_and_test_texts_are_not(finished):
    texts = set(pd.read_parquet(finished.path / "resources/texts/all-texts.parquet")["text"])
    for sign in ("ᚠ", "😀", "中文", "e\u0301", "[CLS]", "<s>", "song in the garden the old man"):
        assert any(sign in text for text in texts), f"no training text with {sign}"
    assert "cat" in texts
    assert texts.isdisjoint({LEAKED, TESTED})
    for task in FAMILIES:
        test = pd.read_parquet(finished.path / "resources" / "tasks" / task / "test.parquet")
        for column in {"text", "sentence1", "sentence2"}.intersection(test.columns):
            assert texts.isdisjoint(test[column])


def test_every_job_has_its_own_log(full_run):
    jobs = full_run.outcome.jobs
    logs = full_run.folder.path / "logs"
    for rule, count in jobs.items():
        if rule != "all":
            found = (
                [logs / "aggregate.log"] if rule == "aggregate" else (logs / rule).rglob("*.log")
            )
            assert len([log for log in found if log.is_file()]) == count, rule
    assert jobs["distil"] == 3
    assert jobs["evaluate"] == jobs["student"] == 9


def test_the_teacher_is_examined_before_its_signals_are_stored(finished):
    record = read(finished, "results/tiny-teacher/doctor.json")
    assert {finding["status"] for finding in record["findings"]} == {"passed"}
    log = (finished.path / "logs" / "doctor" / "tiny-teacher.log").read_text()
    assert "passed   batch = single" in log
    store = finished.path / "results" / "tiny-teacher" / "store" / "all-texts" / "store.json"
    examined = (finished.path / "results" / "tiny-teacher" / "doctor.json").stat().st_mtime
    assert examined < store.stat().st_mtime


def test_logs_have_plain_lines_of_progress_and_no_bars(finished):
    log = finished.path / "logs/distil/tiny-teacher/tiny-student/all-texts/emo/seed1.log"
    assert "distil: 60/60 steps, " in log.read_text()
    for log in (finished.path / "logs").rglob("*.log"):
        content = log.read_bytes()
        assert b"\r" not in content, log
        assert b"\x1b" not in content, log


def test_every_job_is_told_to_have_cost_something(full_run):
    """By rule as many lines as jobs ran; bytes are those of the folders."""
    jobs, path = full_run.outcome.jobs, full_run.folder.path
    costs = pd.read_csv(path / "results" / "costs.csv")
    counted = {rule: count for rule, count in jobs.items() if rule not in LOCAL_RULES}
    assert costs["rule"].value_counts().to_dict() == counted
    assert (costs["seconds"] > 0).all()
    for _, shard in costs[costs["rule"] == "teach_shard"].iterrows():
        folder = path / "results/tiny-teacher/store/all-texts" / shard["part"]
        assert shard["bytes"] == sum(file.stat().st_size for file in folder.glob("*.npy"))
        assert shard["texts_read"] == len(np.load(folder / "vectors.npy"))
        assert shard["tokens"] == len(np.load(folder / "importance.npy"))
    stages = costs[costs["rule"].isin(["teach_shard", "distil", "evaluate", "speed", "doctor"])]
    assert set(stages["device"]) == {"cpu"}
    report = (path / "results" / "report.md").read_text()
    assert "## What it cost" in report
    assert "| tiny-teacher, all-texts | float32 |" in report


def test_nothing_half_made_is_left(finished):
    left = [
        path
        for pattern in (".tmp-*", "*.holder.json", "checkpoint-*")
        for path in finished.path.rglob(pattern)
    ]
    assert left == []
    assert list((finished.path / "results" / ".live").glob("*")) == []


def test_mlflow_has_one_finished_run_for_each_run_of_the_study(finished):
    client = MlflowClient(f"sqlite:///{finished.path}/results/mlflow.db")
    experiment = client.get_experiment_by_name("emo")
    found = client.search_runs([experiment.experiment_id])
    runs = {
        (run.data.tags["emo.task"], run.data.tags["emo.method"], run.data.tags["emo.seed"]): run
        for run in found
    }
    assert len(found) == len(runs), "a run of the study was opened twice"
    assert set(runs) == {(t, m, s) for t, (m, s) in product(FAMILIES, METHODS.items())}
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    assert {run.data.tags["emo.current"] for run in runs.values()} == {"yes"}
    for (task, method, seed), run in runs.items():
        kinds = {name.partition("/")[0] for name in run.data.metrics}
        trained = {"loss", "gradient_norm", "train", "cost"} if seed == "1" else set()
        assert kinds - {"skipped"} == trained | {"eval"}
        files = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert "config.yaml" in files, (task, method)
    emo = runs["questions", "emo", "1"]
    assert {"loss/attention", "loss/transport", "loss/cosine", "loss/relational"} <= set(
        emo.data.metrics
    )
    curve = client.get_metric_history(emo.info.run_id, "loss/transport")
    assert [point.step for point in curve] == [1, *range(5, 61, 5)]
    costs = pd.read_csv(finished.path / "results" / "costs.csv")
    training = costs[(costs["rule"] == "distil") & (costs["method"] == "emo")].iloc[0]
    assert emo.data.metrics["cost/student_seconds"] == training["seconds"]
    shards = costs[costs["rule"].isin(["teach_shard", "teach"])]
    assert emo.data.metrics["cost/teacher_seconds"] == pytest.approx(shards["seconds"].sum())
    assert emo.data.metrics["cost/store_bytes_per_token"] == pytest.approx(
        shards["bytes"].sum() / shards["tokens"].sum()
    )
