"""Scores go to the files always, and to the run that the training opened."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from mlflow import MlflowClient

from emo.distil import distil
from emo.outputs import read_json, write_json
from emo.run_tags import RunKey
from emo.tracked_evaluation import evaluate_and_track

from ..tiny_models import sentences
from .tiny_training import inputs, settings

TRAINED = RunKey("teacher", "student", "stsb", "emo", 1)
REFERENCE = RunKey("teacher", "student", "stsb", "undistilled", 0)


@pytest.fixture
def task(tmp_path):
    folder = tmp_path / "stsb"
    folder.mkdir()
    for number, split in enumerate(("train", "validation", "test")):
        left, right = sentences(12, seed=number), sentences(12, seed=number + 10)
        scores = [float(row % 6) for row in range(12)]
        table = {"row": range(12), "sentence1": left, "sentence2": right, "score": scores}
        pd.DataFrame(table).to_parquet(folder / f"{split}.parquet")
    return folder


def test_without_runs_nothing_is_tracked(tiny, task, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    evaluate_and_track(tiny.student, task, "sts", tmp_path / "out", [])
    assert read_json(tmp_path / "out" / "scores.json")["task"] == "stsb"
    assert not (tmp_path / "results").exists()


def test_a_tracking_store_that_cannot_be_used_takes_no_scores(
    tiny, task, tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.chdir(tmp_path)
    evaluate_and_track(tiny.student, task, "sts", tmp_path / "out", [REFERENCE])
    assert read_json(tmp_path / "out" / "scores.json")["task"] == "stsb"
    told = [record.message for record in caplog.records if record.levelname == "WARNING"]
    (warning,) = (message for message in told if "MLflow does not have them" in message)
    assert "http://127.0.0.1:9 cannot be used" in warning


def test_training_and_evaluation_are_one_run(tiny, task, workdir):
    """A training of two tasks opens two runs; each gets the scores of its own task."""
    other = RunKey("teacher", "student", "stsb-pairs", "emo", 1)
    out = workdir / "trained"
    training = settings(steps=4, gradient_norms_every=2)
    distil(training, inputs(tiny), [TRAINED, other], workdir / "checkpoints", out)
    scores = workdir / "scores"
    evaluate_and_track(out / "student", task, "sts", scores, [TRAINED])
    evaluate_and_track(tiny.student, task, "sts", workdir / "reference", [REFERENCE])
    runs = found(workdir)
    assert set(runs) == {("emo", "stsb"), ("emo", "stsb-pairs"), ("undistilled", "stsb")}
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    metrics = read_json(scores / "scores.json")["metrics"]
    run = runs["emo", "stsb"]
    assert run.data.metrics["eval/spearman"] == pytest.approx(metrics["spearman"])
    assert not [name for name in runs["emo", "stsb-pairs"].data.metrics if "eval/" in name]
    assert run.data.tags["emo.identity"] == read_json(out / "training.json")["identity"]
    assert run.data.params["training.steps"] == "4"
    assert runs["undistilled", "stsb"].data.params["model.pooling"] == "mean"
    assert "eval/pearson" in runs["undistilled", "stsb"].data.metrics
    check_curves(workdir, run, out)


def test_a_reference_with_another_prompt_is_another_run(tiny, task, workdir):
    """The weights are the same, the scores are not: the older run is kept and marked."""
    evaluate_and_track(tiny.student, task, "sts", workdir / "one", [REFERENCE])
    shutil.copytree(tiny.student, workdir / "other")
    record = read_json(tiny.student / "model.json")
    record["settings"]["prompt"] = "another: "
    write_json(workdir / "other" / "model.json", record)
    evaluate_and_track(workdir / "other", task, "sts", workdir / "two", [REFERENCE])
    client = MlflowClient(f"sqlite:///{workdir}/results/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("emo").experiment_id])
    current = {run.data.tags["emo.current"]: run.data.params["model.prompt"] for run in runs}
    assert current == {"yes": "another: ", "no": record_prompt(tiny.student)}


def record_prompt(folder):
    return read_json(folder / "model.json")["settings"]["prompt"]


def check_curves(workdir, run, out):
    """The curves of the run are those of the file."""
    client = MlflowClient(f"sqlite:///{workdir}/results/mlflow.db")
    lines = (out / "history.jsonl").read_text().splitlines()
    history = [json.loads(line) for line in lines]
    for term in ("cosine", "relational", "attention", "transport"):
        points = client.get_metric_history(run.info.run_id, f"loss/{term}")
        expected = [(record["step"], record["terms"][term]) for record in history]
        assert sorted((point.step, point.value) for point in points) == expected
        norms = client.get_metric_history(run.info.run_id, f"gradient_norm/{term}")
        assert sorted(point.step for point in norms) == [1, 2, 4]
    assert {"train/loss", "train/student_cosine", "train/learning_rate"} <= set(run.data.metrics)


def found(workdir: Path):
    client = MlflowClient(f"sqlite:///{workdir}/results/mlflow.db")
    experiment = client.get_experiment_by_name("emo")
    runs = client.search_runs([experiment.experiment_id])
    return {(run.data.tags["emo.method"], run.data.tags["emo.task"]): run for run in runs}
