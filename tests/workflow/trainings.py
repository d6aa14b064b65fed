"""Watch a training that Snakemake runs, hold it still, and disturb it."""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from mlflow import MlflowClient

from emo.outputs import read_json

from .study_folder import StudyFolder

PATIENCE_SECONDS = 240.0
"""Long enough for a start of Python on a machine with much else to do."""


@dataclass(frozen=True)
class Training:
    """The training of `emo` in a study's folder."""

    folder: StudyFolder

    @property
    def out(self) -> Path:
        return self.folder.path / "results/tiny-teacher/tiny-student/trained/all-texts/emo/seed1"

    @property
    def checkpoints(self) -> Path:
        return self.folder.path / "checkpoints/tiny-teacher/tiny-student/all-texts/emo/seed1"

    @property
    def target(self) -> str:
        """The file to ask Snakemake for."""
        return str((self.out / "training.json").relative_to(self.folder.path))

    @property
    def log(self) -> str:
        """The log of the job; Snakemake removes the old one before it starts a job again."""
        log = "logs/distil/tiny-teacher/tiny-student/all-texts/emo/seed1.log"
        path = self.folder.path / log
        return path.read_text() if path.exists() else ""

    @property
    def weights(self) -> dict[str, bytes]:
        """Every weight file of the student, by name."""
        student = self.out / "student"
        files = student.rglob("*.safetensors")
        return {str(path.relative_to(student)): path.read_bytes() for path in files}

    @property
    def history(self) -> str:
        return (self.out / "history.jsonl").read_text()

    def sealed(self) -> list[Path]:
        """The whole checkpoints, newest last."""
        seals = self.checkpoints.glob("*/checkpoint-*/seal.json")
        return sorted((seal.parent for seal in seals), key=lambda path: int(path.name[11:]))

    def hold(self, snakemake: subprocess.Popen[str]) -> psutil.Process:
        """Wait until the job has sealed a checkpoint of its own, and stop it where it is."""
        before = self.sealed()[-1:]
        wait_for(lambda: self.sealed() and self.sealed()[-1:] != before, snakemake)
        holder = read_json(self.checkpoints / "training.holder.json")
        job = psutil.Process(holder["pid"])
        job.suspend()
        assert not (self.out / "training.json").exists(), "the training was too short to be held"
        return job

    def tracked(self) -> list[tuple[str, str]]:
        """Status and attempt of each MLflow run of this training."""
        client = MlflowClient(f"sqlite:///{self.folder.path}/results/mlflow.db")
        experiment = client.get_experiment_by_name("emo")
        runs = client.search_runs([experiment.experiment_id], "tags.`emo.method` = 'emo'")
        return sorted((run.info.status, run.data.tags["emo.attempt"]) for run in runs)


def wait_for(condition, snakemake: subprocess.Popen[str] | None = None) -> None:
    """Wait for something, as long as Snakemake is there to bring it about."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if snakemake is not None and snakemake.poll() is not None:
            raise AssertionError(f"Snakemake ended:\n{snakemake.communicate()[0]}")
        assert time.monotonic() < deadline
        time.sleep(0.005)


def kill_all(snakemake: subprocess.Popen[str]) -> None:
    """``kill -9`` Snakemake and everything it started."""
    os.killpg(snakemake.pid, signal.SIGKILL)
    snakemake.communicate()


def end_processes_in(folder: Path) -> None:
    """Kill whatever still runs in a folder, stopped orphans included."""
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(folder):
                process.kill()
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
