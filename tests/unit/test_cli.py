"""The command line: exit codes, messages and logs. In-process, where no new process is needed."""

import json
import logging
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
import yaml
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

from emo import cli
from emo.alignment import read_alignment
from emo.errors import DataError

CONFIG = Path(__file__).parents[2] / "config.yaml"

CRASH = """
import sys
import emo.config_schema
from emo.cli import main

def crash(path):
    raise RuntimeError("nobody expected this")

emo.config_schema.write_schema = crash
sys.argv = ["emo", "schema", "--out", "schema.yaml", "--log", "crash.log"]
main()
"""


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    """In a folder of its own, and with the root logger as it was afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)


def emo(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def test_every_stage_is_a_command():
    result = emo("--help")
    assert result.exit_code == 0
    for command in ("align", "teach", "distil", "evaluate", "report"):
        assert command in result.output


def test_align_on_a_text_file_writes_the_four_columns(tiny):
    Path("texts.txt").write_text("the old man sings\ncat\n")
    models = ("--teacher", tiny.teacher, "--student", tiny.student)
    result = emo("align", "texts.txt", *models, "--out", "out.parquet")
    assert result.exit_code == 0, result.output
    table = pd.read_parquet("out.parquet")
    assert list(table.columns) == ["text", "teacher_position", "student_position", "distance"]
    assert set(table["text"]) == {0, 1}
    assert not Path("results").exists(), "no store for a command that tracks nothing"
    form = ("--method", "mined-dp", "--text", "normalised")
    done(emo("align", "texts.txt", *models, "--out", "other.parquet", *form))
    origin = read_alignment(Path("other.parquet")).origin
    assert origin is not None
    assert (origin.method, origin.form) == ("mined-dp", "normalised")


def test_the_stages_of_a_training_run_one_after_another(tiny):
    """From a source folder to a student, by the commands that the rules call."""
    for role, length in (("teacher", 40), ("student", 32)):
        source = tiny.folder / f"{role}-source"
        options = json.dumps({"source": {"path": str(source)}, "max_length": length})
        done(emo("model", source, "--settings", options, "--out", role))
    shared = ("--teacher", "teacher")
    done(emo("teach", tiny.texts, *shared, "--out", "store/1-of-1"))
    done(emo("store", "gather", "store/1-of-1", "--out", "store/store.json"))
    done(emo("store", "verify", "store/store.json"))
    both = (*shared, "--student", "student")
    done(emo("align", tiny.texts, *both, "--method", "mined", "--out", "map.parquet"))
    rows = (
        "--request",
        "original.mined.text.m4.paired.k1",
        "--store",
        "store/store.json",
        "--alignment",
        "map.parquet",
    )
    done(emo("teach-rows", tiny.texts, *both, *rows, "--out", "rows/1-of-1"))
    done(emo("store", "gather", "rows/1-of-1", "--out", "rows/store.json"))
    settings = {
        "method": {"form": "emo", "rows": 4},
        "training": {"steps": 2, "batch_size": 8, "learning_rate": 1e-3},
        "family": "sts",
        "seed": 1,
    }
    Path("settings.yaml").write_text(yaml.safe_dump(settings))
    files = ("--student", "student", "--store", "store/store.json", "--checkpoints", "checks")
    signals = ("--alignment", "map.parquet", "--rows", "rows/store.json")
    training = ("distil", tiny.texts, "--settings", "settings.yaml", *files, *signals)
    done(emo(*training, "--out", "trained"))
    assert SentenceTransformer("trained/student", device="cpu").encode("cat").shape == (48,)
    assert not Path("results").exists(), "no store for a training without --runs"


def done(result):
    assert result.exit_code == 0, f"{result.output}\n{result.exception}"


def test_data_at_fault_is_1_and_the_message_has_no_traceback(tiny):
    models = ("--teacher", tiny.teacher, "--student", tiny.student)
    result = emo("align", "missing.txt", *models, "--out", "out.parquet")
    assert result.exit_code == 1
    assert "missing.txt: not a readable UTF-8 text file" in result.output
    assert "Traceback" not in result.output


def test_a_config_at_fault_is_2_and_names_the_key():
    config = yaml.safe_load(CONFIG.read_text())
    config["training"]["stps"] = 5
    Path("study.yaml").write_text(yaml.safe_dump(config))
    result = emo("report", "--settings", "study.yaml", "--out", "results")
    assert result.exit_code == 2
    assert "training.stps: unknown key; did you mean `steps`?" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("nowhere.yaml", "--settings: neither JSON nor a readable file"),
        ('{"path": ', "--settings: neither JSON nor a readable file"),
        ('{"hub": "a/b"}', "--settings: "),
    ],
)
def test_settings_at_fault_are_2(settings, said):
    result = emo("fetch", "--settings", settings, "--out", "out")
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("alin",),
        ("align", "texts.txt"),
        ("align", "texts.txt", "--teacher", "t", "--student", "s", "--out", "o", "--methd", "x"),
        ("align", "t.txt", "--teacher", "t", "--student", "s", "--out", "o", "--method", "mine"),
    ],
)
def test_usage_at_fault_is_2(arguments):
    assert emo(*arguments).exit_code == 2


def test_schema_is_written():
    assert emo("schema", "--out", "schema.yaml").exit_code == 0
    assert yaml.safe_load(Path("schema.yaml").read_text())["title"] == "Study"


def test_an_unexpected_error_is_1_with_its_traceback(monkeypatch):
    def crash(path):
        raise RuntimeError("nobody expected this")

    monkeypatch.setattr("emo.config_schema.write_schema", crash)
    result = emo("schema", "--out", "schema.yaml")
    assert result.exit_code == 1
    assert "Traceback" in result.output
    assert "RuntimeError: nobody expected this" in result.output


def test_the_log_holds_the_traceback():
    """In a process of its own, since --log takes the whole output of the process."""
    done = subprocess.run([sys.executable, "-c", CRASH], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    log = Path("crash.log").read_text()
    assert "Traceback (most recent call last)" in log
    assert "RuntimeError: nobody expected this" in log


def test_the_module_runs_as_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "emo", "schema"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--out" in done.stderr


LOCKED = {
    "fetch": ("--settings", '{"path": "x"}'),
    "model": ("x", "--settings", "{}"),
    "task": ("x", "--source", "x", "--settings", "{}"),
    "texts": ("x", "--unseen", "x"),
    "align": ("x", "--teacher", "x", "--student", "x"),
    "doctor": ("x",),
    "teach": ("x", "--teacher", "x"),
    "teach-basis": ("x", "--teacher", "x", "--width", "2"),
    "teach-rows": (
        *("x", "--request", "x", "--teacher", "x", "--student", "x"),
        *("--store", "x", "--alignment", "x"),
    ),
    "gather": ("x",),
    "evaluate": ("x", "--task", "x", "--family", "sts"),
    "choose": ("--settings", "[]"),
    "speed": ("x", "--texts", "x"),
    "report": ("--settings", "x"),
    "evidence": ("--settings", "x", "--differences", "x", "--page", "x"),
}
UNLOCKED = {"distil", "plan", "schema", "tune", "verify"}


def test_one_process_at_a_time_makes_an_output(monkeypatch):
    """An orphaned job and its successor: held before anything is read, beside the output."""
    commands = {
        command.name or command.callback.__name__
        for command in [*cli.app.registered_commands, *cli.stores.registered_commands]
    }
    assert commands == LOCKED.keys() | UNLOCKED
    held = []

    @contextmanager
    def refuse(path, what):
        held.append((path, what))
        raise DataError("held by another")
        yield

    monkeypatch.setattr("emo.commands.options.exclusive", refuse)
    for command, arguments in LOCKED.items():
        group = ("store",) if command == "gather" else ()
        result = emo(*group, command, *arguments, "--out", "made/it")
        assert (result.exit_code, "held by another" in result.output) == (1, True), command
    place = Path.cwd() / "made"
    assert held == [(place / ".it", f"the output {place / 'it'}")] * len(LOCKED)


def test_the_lock_is_free_again_after_an_error():
    for _ in range(2):
        result = emo("report", "--settings", "missing.yaml", "--out", ".")
        assert "--settings: neither JSON nor a readable file" in result.output
    assert not list(Path.cwd().parent.glob(".*.holder.json"))
