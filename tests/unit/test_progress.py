import io
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from emo import progress
from emo.progress import Progress, track

from ..clock import Clock

REDIRECTED = """
import os, subprocess, sys, warnings, logging
from pathlib import Path
from emo.progress import configure_logging, track

configure_logging(Path(sys.argv[1]))
configure_logging(Path(sys.argv[1]))
print("printed")
os.write(1, b"from C\\n")
subprocess.run([sys.executable, "-c", "print('from a child')"])
warnings.warn("warned")
logging.getLogger("emo.some").info("logged")
list(track("ab", total=2, what="encode"))
raise RuntimeError("broken")
"""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_are_spaced_and_hold_rate_and_remaining_time(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with Progress(total=10345, what="encode") as running:
        for _ in range(10):
            clock.now += 1.5
            running.advance(128)
        assert caplog.messages == ["encode: 1280/10345 texts, 85.3 texts/s, 1:46 left"]
        clock.now += 3585
        running.advance(9065)
    assert caplog.messages[-1] == "encode: 10345/10345 texts, 2.874 texts/s, took 1:00:00"


def test_earlier_units_do_not_count_in_the_rate(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with Progress(total=1000, what="train", unit="steps", start=900) as running:
        clock.now += 20
        running.advance(10)
    assert caplog.messages[0] == "train: 910/1000 steps, 0.500 steps/s, 3:00 left"


def test_nothing_done_has_no_rate(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert list(track([], total=0, what="align")) == []
    assert caplog.messages == ["align: 0/0 texts, took 0:00"]


def test_item_counts_once_its_user_is_done_with_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for _ in track("abc", total=3, what="align"):
        break
    assert caplog.messages[0].startswith("align: 0/3 texts")


def test_bar_shows_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        monkeypatch.setattr(progress, "_terminal", stream)
        list(track("abc", total=3, what="encode"))
    assert "encode" in terminal.getvalue()
    assert pipe.getvalue() == ""


def test_all_output_lands_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "stage.log"
    log.parent.mkdir()
    log.write_text("of an earlier run")
    command = [sys.executable, "-c", REDIRECTED, str(log)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stdout + done.stderr == b""
    text = log.read_text()
    positions = [
        text.index(words)
        for words in (
            "printed",
            "from C",
            "from a child",
            "UserWarning: warned",
            " INFO emo.some: logged",
            " INFO emo.progress: encode: 2/2 texts",
            "RuntimeError: broken",
        )
    ]
    assert positions == sorted(positions)
    assert "earlier" not in text
