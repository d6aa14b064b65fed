"""Killed, orphaned and disturbed runs: the same command again brings the same result."""

import shutil
import signal
import subprocess
import sys

import psutil
import pytest

from .study_folder import tiny_config
from .trainings import Training, end_processes_in, kill_all, wait_for

pytestmark = pytest.mark.workflow


@pytest.fixture
def training(study):
    """The training of `emo` in a study where everything is finished but it."""
    shutil.rmtree(study.path / "results/tiny-teacher/tiny-student/trained/all-texts/emo")
    yield Training(study)
    end_processes_in(study.path)  # there are none unless the test failed half way


@pytest.fixture
def undisturbed(finished):
    undisturbed = Training(finished)
    assert "model.safetensors" in undisturbed.weights
    return undisturbed


def test_training_killed_in_every_way_ends_with_the_same_weights(training, undisturbed):
    """SIGTERM to the job, then ``kill -9`` to everything at once, a broken checkpoint behind."""
    first = training.folder.start(training.target)
    job = training.hold(first)
    job.send_signal(signal.SIGTERM)
    job.resume()
    output, _ = first.communicate()
    assert first.returncode != 0, output
    assert training.tracked() == [("KILLED", "1")] * 3

    second = training.folder.start(training.target)
    training.hold(second)
    kill_all(second)
    assert training.tracked() == [("RUNNING", "2")] * 3
    assert "resuming from" in training.log
    any_command = [sys.executable, "-m", "emo", "schema", "--out", "schema.yaml"]
    subprocess.run(
        any_command, cwd=training.folder.path, env=training.folder.environment(), check=True
    )
    assert training.tracked() == [("KILLED", "2")] * 3

    whole = training.sealed()[-1]
    broken = whole.with_name(f"checkpoint-{int(whole.name[11:]) + 1}")
    shutil.copytree(whole, broken, ignore=shutil.ignore_patterns("seal.json", "optimizer.pt"))
    last = training.folder.snakemake(training.target)
    assert last.code == 0, last.output
    assert last.jobs == {"distil": 1}
    assert "removed the Snakemake lock" in last.output
    assert f"{broken.name}: incomplete" in training.log
    assert f"resuming from {whole.relative_to(training.folder.path)}\n" in training.log
    assert training.weights == undisturbed.weights
    assert training.history == undisturbed.history
    assert training.tracked() == [("FINISHED", "3")] * 3


def test_successor_waits_for_an_orphan_and_never_writes_beside_it(training, undisturbed):
    first = training.folder.start(training.target)
    orphan = training.hold(first)
    rival = training.folder.snakemake(training.target)
    assert rival.code != 0
    assert "LockException" in rival.output
    assert first.poll() is None

    first.kill()  # the job lives on
    first.wait()
    successor = training.folder.start(training.target)
    wait_for(lambda: f"held by process {orphan.pid}" in training.log, successor)
    assert orphan.status() == psutil.STATUS_STOPPED
    orphan.resume()
    output, _ = successor.communicate()
    assert successor.returncode == 0, output
    assert "removed the Snakemake lock" in output
    assert "already finished by another process" in training.log
    assert training.weights == undisturbed.weights
    assert training.history == undisturbed.history
    assert training.tracked() == [("FINISHED", "1")] * 3


def test_test_row_without_text_stops_the_run_unless_the_config_lets_it_go(study):
    file = study.path / "data" / "sentences" / "test.tsv"
    lines = file.read_text().splitlines(keepends=True)
    lines.insert(5, "a dog\t\u200b\t1.0\n")
    file.write_text("".join(lines))
    target = "resources/tasks/sentences"
    outcome = study.snakemake(target)
    assert outcome.code != 0
    for words in ("test.tsv: 1 test rows without text", "rows 5;", "drop_unusable_test_rows: true"):
        assert words in outcome.output
    assert "Traceback" not in outcome.output
    assert not (study.path / target).exists()

    config = tiny_config()
    config["tasks"]["sentences"]["drop_unusable_test_rows"] = True
    outcome = study.snakemake(target, config=config)
    assert outcome.code == 0, outcome.output
    assert '"test": [\n      5\n    ]' in (study.path / target / "report.json").read_text()
