"""A search before the trainings that count, through Snakemake."""

import pytest
from mlflow import MlflowClient

from emo.outputs import read_json

from .study_folder import tiny_config

pytestmark = pytest.mark.workflow

STUDENT = "results/tiny-teacher/tiny-student"
SEARCH = f"{STUDENT}/search/all-texts/pooled"
TRAINED = f"{STUDENT}/trained/all-texts/pooled/seed1/training.json"


def searching(**search):
    config = tiny_config()
    config["study"] |= {"methods": ["pooled"], "tasks": ["sentences"]}
    config["study"]["compare"] = {"method": "pooled", "baseline": "pooled"}
    config["search"] = {"learning_rate": [1.0e-5, 1.0e-3], "seed": 7} | search
    return config


def test_every_rate_is_tried_and_the_training_has_the_chosen_one(study):
    config = searching(steps=2)
    outcome = study.snakemake(TRAINED, config=config)
    assert outcome.code == 0, outcome.output
    jobs = {"trial": 2, "evaluate_trial": 2, "choose": 1, "distil": 1}
    assert {rule: outcome.jobs[rule] for rule in jobs} == jobs
    choice = read_json(study.path / SEARCH / "chosen.json")
    validation = {}
    for rate in ("1e-05", "0.001"):
        tried = read_json(study.path / SEARCH / f"rate{rate}" / "training.json")["settings"]
        assert (tried["training"]["learning_rate"], tried["seed"]) == (float(rate), 7)
        assert tried["training"]["steps"] == 2
        scores = read_json(study.path / SEARCH / f"rate{rate}" / "sentences" / "scores.json")
        validation[rate] = scores["validation"]
    assert choice["validation"] == validation
    assert choice["learning_rate"] == float(max(validation, key=validation.get))
    trained = read_json(study.path / TRAINED)["settings"]
    assert trained["training"]["learning_rate"] == choice["learning_rate"]
    assert trained["training"]["steps"] == config["training"]["steps"]
    client = MlflowClient(f"sqlite:///{study.path}/results/mlflow.db")
    experiment = client.get_experiment_by_name("emo").experiment_id
    runs = client.search_runs([experiment], "tags.`emo.method` LIKE 'pooled@%'")
    tracked = {run.data.tags["emo.method"]: run.data.metrics for run in runs}
    assert tracked.keys() == {"pooled@1e-05", "pooled@0.001"}
    assert all("eval/validation_spearman" in metrics for metrics in tracked.values())
    assert study.plan(TRAINED, config=config).nothing_to_do


def test_another_grid_tries_what_is_new(study):
    plan = study.plan(TRAINED, config=searching())
    assert (plan.jobs["trial"], plan.jobs["evaluate_trial"]) == (2, 2), plan.output
    wider = study.plan(TRAINED, config=searching(learning_rate=[1.0e-5, 1.0e-4, 1.0e-3]))
    assert wider.jobs["trial"] == 3
