"""Each score is traced to the run that it was tracked in, or refused."""

import re
from pathlib import Path

import pytest
from mlflow import MlflowClient

from emo.errors import ConfigError, DataError
from emo.evidence.trace import trace_runs
from emo.outputs import read_json, write_json
from emo.run_tags import RunKey
from emo.tracking import RunGroup

from .conftest import loaded

KEY = RunKey("e5", "minilm", "stsb", "emo", 2)
TRAINING = Path("results/e5/minilm/trained/all/emo/seed2/training.json")
SCORES = Path("results/e5/minilm/stsb/emo/seed2/scores.json")


def test_each_run_is_the_one_with_its_tags_and_scores(study):
    runs = loaded(study)
    traced = trace_runs(study, runs)
    assert [each.run for each in traced] == runs
    assert len({each.tracked.run_id for each in traced}) == len(runs) == 24
    client = store()
    for each in traced:
        tags = client.get_run(each.tracked.run_id).data.tags
        assert RunKey.from_tags(tags) == RunKey(
            each.run.teacher, each.run.student, each.run.task, each.run.method, each.run.seed
        )
        assert tags["emo.identity"] == each.tracked.identity
        assert tags["emo.git_commit"] == each.tracked.commit
        assert each.tracked.scores[each.run.main] == pytest.approx(each.run.score)


def test_a_run_that_another_replaced_is_not_used(study):
    before = {each.run.method: each for each in trace_runs(study, loaded(study))}
    record = read_json(TRAINING)
    write_json(TRAINING, record | {"identity": "later"})
    metrics = read_json(SCORES)["metrics"]
    with RunGroup([KEY], "later", {}, {}) as group:
        group.log_scores(KEY, metrics)
    runs = [run for run in loaded(study) if (run.task, run.method, run.seed) == ("stsb", "emo", 2)]
    (traced,) = trace_runs(study, runs)
    assert traced.tracked.identity == "later"
    assert traced.tracked.run_id != before["emo"].tracked.run_id


def store():
    # Absolute: MLflow keeps a store open by its address.
    return MlflowClient(f"sqlite:///{Path.cwd()}/results/mlflow.db")


def refused(study, message, error=DataError):
    with pytest.raises(error, match=re.escape(message)):
        trace_runs(study, loaded(study))


def test_a_run_that_is_not_tracked_is_named_with_the_way_out(study):
    client = store()
    (run,) = [each for each in trace_runs(study, loaded(study)) if key_of(each.run) == KEY]
    client.delete_run(run.tracked.run_id)
    refused(study, "e5/minilm/stsb/emo/seed2 has no run in MLflow")
    refused(study, f"remove {SCORES} and run the study again")
    Path("results/mlflow.db").unlink()
    refused(study, "has no run in MLflow")
    assert not Path("results/mlflow.db").exists()


def key_of(run):
    return RunKey(run.teacher, run.student, run.task, run.method, run.seed)


def test_another_score_in_mlflow_is_refused(study):
    with RunGroup([KEY], "emo2", {}, {}) as group:
        group.log_scores(KEY, {"spearman": 0.125})
    refused(study, "in its file and 0.125 in MLflow run")


def test_another_training_is_refused(study):
    record = read_json(TRAINING)
    write_json(TRAINING, record | {"identity": "another"})
    refused(study, f"{TRAINING} is not the training that MLflow run")
    record["settings"]["method"]["transport"] = 0.25
    write_json(TRAINING, record)
    refused(study, f"{TRAINING}: emo was trained with other settings than the study has")
    write_json(TRAINING, {"identity": "emo2"})
    refused(study, f"{TRAINING}: no record of a training")


def test_a_store_out_of_reach_is_told(study, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    refused(study, "tracking store http://127.0.0.1:9 cannot be used", ConfigError)
