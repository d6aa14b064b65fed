import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest

from emo.process import ProcessIdentity
from emo.stale_lock import clear_stale_lock

SNAKEFILE = """
import time
from pathlib import Path

from emo.stale_lock import clear_stale_lock

if workflow.is_main_process:
    clear_stale_lock(Path.cwd())


rule all:
    output:
        "done",
    shell:
        "touch started; test -e quick || sleep 60; touch done"
"""
DEAD = ProcessIdentity(host=ProcessIdentity.current().host, pid=2**22 - 1, start=1.0)


@pytest.fixture
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a lock, as seen by a process called ``snakemake -c1``."""
    locks = tmp_path / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.output.lock").write_text("done\n")
    monkeypatch.setattr(sys, "argv", ["snakemake", "-c1"])
    monkeypatch.setattr("atexit.register", lambda function: function)
    return tmp_path


def register(workdir: Path, owner: ProcessIdentity, name: str = "one") -> Path:
    record = workdir / ".snakemake" / "emo-owners" / f"{name}.json"
    record.parent.mkdir(exist_ok=True)
    record.write_text(json.dumps(asdict(owner)))
    return record


def is_locked(workdir: Path) -> bool:
    return any((workdir / ".snakemake" / "locks").iterdir())


def test_lock_of_a_dead_owner_is_removed(workdir: Path) -> None:
    record = register(workdir, DEAD)
    assert clear_stale_lock(workdir)
    assert not is_locked(workdir)
    assert not record.exists()


def test_lock_without_a_registered_owner_stays(workdir: Path) -> None:
    assert not clear_stale_lock(workdir)
    assert is_locked(workdir)


@pytest.mark.parametrize(
    "other",
    [ProcessIdentity.current(), ProcessIdentity(host="elsewhere", pid=DEAD.pid, start=1.0)],
    ids=["alive", "another host"],
)
def test_lock_that_another_process_may_own_stays(workdir: Path, other: ProcessIdentity) -> None:
    record = register(workdir, DEAD)
    register(workdir, other, "other")
    assert not clear_stale_lock(workdir)
    assert is_locked(workdir)
    assert record.exists(), "the evidence is needed once the other process has ended"


def test_lock_older_than_its_only_possible_owner_stays(workdir: Path) -> None:
    register(workdir, ProcessIdentity(host=DEAD.host, pid=DEAD.pid, start=time.time() + 60))
    assert not clear_stale_lock(workdir)


@pytest.mark.parametrize("flag", ["-n", "-np", "--dry-run", "--nolock"])
def test_runs_that_take_no_lock_change_nothing(
    workdir: Path, monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    register(workdir, DEAD)
    before = sorted(workdir.rglob("*"))
    monkeypatch.setattr(sys, "argv", ["snakemake", flag])
    assert not clear_stale_lock(workdir)
    assert sorted(workdir.rglob("*")) == before


@pytest.mark.parametrize(("option", "refused"), [("-Rtrain", True), ("--nolock", False)])
def test_unregistered_snakemake_in_the_folder_keeps_its_lock(
    workdir: Path, option: str, refused: bool
) -> None:
    register(workdir, DEAD)
    script = workdir / "snakemake"
    script.write_text("print(flush=True); import time; time.sleep(60)")
    command = [sys.executable, "-Wignore", str(script), option]
    with subprocess.Popen(command, cwd=workdir, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert clear_stale_lock(workdir) is not refused
        process.kill()


def test_process_of_another_user_counts_as_an_owner(
    workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hidden:
        pid = DEAD.pid

        def cmdline(self) -> list[str]:
            return ["snakemake"]

        def cwd(self) -> str:
            raise psutil.AccessDenied(self.pid)

    monkeypatch.setattr(psutil, "process_iter", lambda: [Hidden()])
    register(workdir, DEAD)
    assert not clear_stale_lock(workdir)


def snakemake(workdir: Path) -> list[str]:
    command = [sys.executable, "-m", "snakemake", "-c1", "--workflow-profile", "none"]
    return [*command, "--rerun-incomplete", "--directory", str(workdir)]


def test_real_kill_and_real_rival(tmp_path: Path) -> None:
    """A second Snakemake is refused while the first lives, and welcome after ``kill -9``."""
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    command = [*snakemake(tmp_path), "--snakefile", str(tmp_path / "Snakefile")]
    quiet = subprocess.DEVNULL
    first = subprocess.Popen(command, start_new_session=True, stdout=quiet, stderr=quiet)
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists():
        assert time.monotonic() < deadline
        assert first.poll() is None
        time.sleep(0.05)

    rival = subprocess.run(command, capture_output=True, text=True, check=False)
    assert rival.returncode != 0
    assert "LockException" in rival.stderr
    assert first.poll() is None

    os.killpg(first.pid, 9)
    first.wait()
    assert is_locked(tmp_path)
    (tmp_path / "quick").touch()
    successor = subprocess.run(command, capture_output=True, text=True, check=False)
    assert successor.returncode == 0, successor.stderr
    assert (tmp_path / "done").exists()
    assert not list((tmp_path / ".snakemake" / "emo-owners").glob("*.json"))
