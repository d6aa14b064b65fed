"""A folder in which the repository's own workflow runs, and what Snakemake says there."""

import copy
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

REPO = Path(__file__).parents[2]
TINY = REPO / "tests" / "config" / "tiny.yaml"


def tiny_config() -> dict[str, Any]:
    """Return the tiny study, to be changed at will."""
    return copy.deepcopy(yaml.safe_load(TINY.read_text()))  # aliases are shared objects


@dataclass(frozen=True)
class Outcome:
    """What a finished command said."""

    code: int
    output: str

    @property
    def jobs(self) -> Counter[str]:
        """How often each rule is in the last table of jobs."""
        table = self.output.rpartition("Job stats:")[2]
        rows = re.findall(r"^(\w+) +(\d+)$", table, flags=re.MULTILINE)
        return Counter({rule: int(count) for rule, count in rows if rule != "total"})

    @property
    def nothing_to_do(self) -> bool:
        return "Nothing to be done" in self.output


@dataclass(frozen=True)
class StudyFolder:
    """A working directory of the workflow.

    Attributes:
        path: The directory.
        repo: Where Snakefile and package are taken from.
    """

    path: Path
    repo: Path = REPO

    def copy_to(self, path: Path) -> "StudyFolder":
        """Copy everything, times and links included: to Snakemake it is the same folder."""
        shutil.copytree(self.path, path, symlinks=True)
        return StudyFolder(path)

    def command(self, *arguments: str, config: Path | dict[str, Any] = TINY) -> list[str]:
        """Return a Snakemake command line; a config given as a dict is written beside."""
        if isinstance(config, dict):
            file = self.path / "study.yaml"
            file.write_text(yaml.safe_dump(config))
            config = file
        return [
            *(sys.executable, "-m", "snakemake", *arguments),
            *("--snakefile", str(self.repo / "Snakefile"), "--directory", str(self.path)),
            *("--configfile", str(config), "--replace-workflow-config"),
            *("--workflow-profile", "none", "--cores", "2"),
            *("--rerun-incomplete", "--show-failed-logs"),  # as in profiles/default
        ]

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Start Snakemake as the leader of a process group of its own."""
        return subprocess.Popen(
            self.command(*arguments, **options),
            cwd=self.path,
            env=self.environment(),
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def snakemake(self, *arguments: str, **options: Any) -> Outcome:
        """Run Snakemake to its end."""
        with self.start(*arguments, **options) as process:
            output, _ = process.communicate()
        return Outcome(process.returncode, output)

    def emo(self, *arguments: str) -> Outcome:
        """Run a command of the package here."""
        done = subprocess.run(
            [sys.executable, "-m", "emo", *arguments],
            cwd=self.path,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return Outcome(done.returncode, done.stdout)

    def plan(self, *arguments: str, **options: Any) -> Outcome:
        """Ask what would run."""
        return self.snakemake("-n", *arguments, **options)

    def environment(self) -> dict[str, str]:
        """Return the surroundings of a run: offline, on the CPU, untouched by the user's own."""
        chosen = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(self.repo)}
        theirs = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MLFLOW_", "SNAKEMAKE_"))
        }
        return theirs | chosen
