import logging
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from emo import outputs
from emo.errors import DataError
from emo.outputs import (
    atomic_directory,
    atomic_file,
    exclusive,
    read_json,
    sha256_file,
    write_json,
)

Writer = Callable[[Path], AbstractContextManager[Path]]

KILLED_WRITER = """
import sys
from pathlib import Path
from emo.outputs import atomic_directory, exclusive

folder = Path(sys.argv[1])
with exclusive(folder / "work", "the work"), atomic_directory(folder / "model") as temporary:
    (temporary / "half").touch()
    print(flush=True)
    sys.stdin.read()
"""


def start_writer(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", KILLED_WRITER, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_file_appears_whole_and_keeps_its_suffix(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "figure.png"
    with atomic_file(target) as temporary:
        assert temporary.suffix == ".png"
        temporary.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert list(target.parent.iterdir()) == [target]


def test_directory_replaces_the_old_one_entirely(tmp_path: Path) -> None:
    target = tmp_path / "model"
    for name in ("old", "new"):
        with atomic_directory(target) as temporary:
            (temporary / "sub").mkdir()
            (temporary / "sub" / name).touch()
            (temporary / "dangling").symlink_to("nowhere")
    assert [path.name for path in (target / "sub").iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [target]


def fail(writer: Writer, target: Path) -> None:
    with writer(target) as temporary:
        inside = temporary / "half" if temporary.is_dir() else temporary
        inside.write_text("half")
        raise KeyboardInterrupt


@pytest.mark.parametrize("writer", [atomic_file, atomic_directory])
def test_failure_leaves_what_was_there(tmp_path: Path, writer: Writer) -> None:
    target = tmp_path / "output"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        fail(writer, target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_old_folder_returns_when_the_new_one_cannot_take_its_place(tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").touch()
    with pytest.raises(FileNotFoundError), atomic_directory(target) as temporary:
        temporary.rename(tmp_path / "stolen")
    assert (target / "old").exists()


def test_leftovers_of_dead_processes_alone_are_cleared(tmp_path: Path) -> None:
    dead, alive = start_writer(tmp_path), start_writer(tmp_path / "other")
    dead.kill()
    dead.communicate()
    with atomic_file(tmp_path / "scores.json") as temporary:
        temporary.touch()
        assert len(list(tmp_path.glob(".tmp-*"))) == 2, "another output's leftover is not ours"
    with atomic_directory(tmp_path / "model") as temporary:
        assert list(tmp_path.glob(".tmp-*")) == [temporary]
    with atomic_directory(tmp_path / "other" / "model") as temporary:
        assert len(list(temporary.parent.glob(".tmp-*"))) == 2, "its writer is still at work"
    alive.communicate()
    assert list((tmp_path / "other" / "model").iterdir())


def test_sha256(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert sha256_file(tmp_path / "file").startswith("ba7816bf8f01cfea414140de5dae2223")


def test_json_round_trip_is_sorted_and_strict(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    write_json(path, {"b": "é", "a": [1, 2.5, None]})
    assert read_json(path) == {"a": [1, 2.5, None], "b": "é"}
    text = path.read_text(encoding="utf-8")
    assert text.index('"a"') < text.index('"b"')
    assert text.endswith("}\n")
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, float("nan"))
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("content", "words"), [(b'{"a": ', "damaged"), (b"\xff", "damaged"), (None, "missing")]
)
def test_broken_json_is_named(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "scores.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=rf"{re.escape(str(path))} is {words}"):
        read_json(path)


def test_second_holder_waits_and_says_for_whom(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait ends when the first holder is killed outright."""
    monkeypatch.setattr(outputs, "FIRST_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(outputs, "WAIT_SECONDS", 0.2)
    first = start_writer(tmp_path)

    def kill_at_third_line(record: logging.LogRecord) -> bool:
        if len(caplog.records) == 2:
            first.kill()
        return True

    monkeypatch.setattr(outputs.logger, "filters", [kill_at_third_line])
    started = time.monotonic()
    with exclusive(tmp_path / "work", "the work"):
        assert time.monotonic() - started > 0.2
    assert len(caplog.records) >= 2
    assert f"waiting for the work, held by process {first.pid} on " in caplog.text
    assert not (tmp_path / "work.holder.json").exists()
    first.communicate()
