"""``kill -9`` at random moments of the teacher pass: what is made afterwards is the same.

Every other moment is drawn from the time in which the pass writes, which may be too short a part of
the whole for a moment of the whole to fall into it.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from ..tiny_models import sentences, write_texts

TEXTS = 200
MOMENTS = 10

# Forks, so that the libraries are loaded once; no model is run before the last fork.
DRIVER = """
import os, random, signal, sys, time
from pathlib import Path
import sentence_transformers, transformers
from transformers import BertModel
from emo.teach import teach

teacher, texts, out = map(Path, sys.argv[1:4])
moments = int(sys.argv[4])

def start(folder):
    child = os.fork()
    if not child:
        status = 1
        try:
            teach(teacher, texts, folder / "1-of-2")
            status = 0
        finally:
            os._exit(status)
    return child

def writing():
    return any((out / "disturbed").glob(".tmp-*/states.npy"))

def running(child):
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

began = time.monotonic()
_, status = os.waitpid(start(out / "undisturbed"), 0)
assert status == 0
whole = time.monotonic() - began
moment = random.Random(1)
killed = half_made = 0
for number in range(moments):
    child = start(out / "disturbed")
    if number % 2:
        while not writing() and running(child):
            time.sleep(0.001)
        time.sleep(moment.random() * 0.02)
    else:
        time.sleep(moment.random() * whole)
    half_made += writing()
    os.kill(child, signal.SIGKILL)
    killed += os.waitpid(child, 0)[1] == signal.SIGKILL
    shard = out / "disturbed" / "1-of-2"
    assert not shard.exists() or (shard / "manifest.json").exists(), "half a shard"
_, status = os.waitpid(start(out / "disturbed"), 0)
assert status == 0
print(killed, half_made)
"""


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_pass_killed_ten_times_leaves_the_same_bytes(tiny_models, tmp_path):
    texts = write_texts(sentences(TEXTS), tmp_path / "texts.parquet")
    command = [sys.executable, "-c", DRIVER, tiny_models.teacher, texts, tmp_path, MOMENTS]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    killed, half_made = map(int, done.stdout.split()[-2:])
    assert killed >= MOMENTS // 2, "most are killed before they end"
    assert half_made, "and some while they write"
    disturbed = content(tmp_path / "disturbed")
    assert disturbed == content(tmp_path / "undisturbed")
    assert {name.partition("/")[0] for name in disturbed} == {"1-of-2"}, "nothing half made is left"


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_a_shard_does_not_depend_on_who_makes_the_others(tiny_models, tmp_path, shards):
    """Made alone or after others, in one process or in several."""
    from emo.teach import teach

    names = [f"{number + 1}-of-{shards}" for number in range(shards)]
    for name in names:
        teach(tiny_models.teacher, tiny_models.texts, tmp_path / "forth" / name)
    for name in reversed(names):
        teach(tiny_models.teacher, tiny_models.texts, tmp_path / "back" / name)
    assert content(tmp_path / "forth") == content(tmp_path / "back")
