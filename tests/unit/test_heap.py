"""Freed memory goes back to the system: in a process of its own, since a heap has a history."""

import platform
import subprocess
import sys

import pytest

from emo import heap

PROGRAM = """
import psutil
from emo.heap import give_back_freed_memory
kept = []
for _ in range(20000):
    freed, last = bytearray(5000), bytearray(100)
    kept.append((freed, last))
kept = [last for _, last in kept]  # pieces of 5000 bytes between pieces that stay
del freed, last
before = psutil.Process().memory_info().rss
give_back_freed_memory()
print(before - psutil.Process().memory_info().rss)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="asks what only glibc answers")
def test_pieces_between_what_is_kept_go_back():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20_000_000  # of 100 MB; a page is given back whole or not at all


def test_another_c_library_is_left_alone(monkeypatch):
    heap._trim.cache_clear()
    monkeypatch.setattr(heap.ctypes, "CDLL", lambda name: object())
    heap.give_back_freed_memory()
    heap._trim.cache_clear()
