"""``kill -9`` in the middle of a tuning: the same command ends with the same bits."""

import json
import signal
import subprocess
import sys
import time

from .conftest import SIZES
from .test_resumed import content

PATIENCE_SECONDS = 240.0


def test_the_same_command_after_kill_9_ends_with_the_same_weights(inputs, tuned, tmp_path):
    files = inputs("classification")
    settings = SIZES | {"kind": "lora", "rank": 4, "alpha": 8}
    command = [
        *(sys.executable, "-m", "emo", "tune", str(files.teacher), "--task", str(files.task)),
        *("--settings", json.dumps(settings), "--checkpoints", "checks", "--out", "out"),
    ]

    def sealed():
        return list(tmp_path.glob("checks/*/checkpoint-*/seal.json"))

    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not sealed():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists(), "the tuning was too short to be killed"
    again = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert "resuming from checks" in again.stderr
    assert content(tmp_path / "out") == content(tuned("classification"))
