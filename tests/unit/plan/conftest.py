"""A text set of several batches, and a clock that only passes of models move."""

import pytest

from emo.plan import stopwatch, teacher

from ...clock import Clock
from ...tiny_models import sentences, write_texts

TEXTS = 400
SHARDS = 2


@pytest.fixture(scope="session")
def texts(tmp_path_factory):
    """Sentences in an order in which their length grows, so that a first part would mislead."""
    ordered = sorted(sentences(TEXTS, seed=5), key=len)
    return write_texts(ordered, tmp_path_factory.mktemp("plan") / "texts.parquet")


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(stopwatch, "time", clock)
    return clock


@pytest.fixture
def short(monkeypatch):
    """A probe that passes as few batches as it may."""
    monkeypatch.setattr(teacher, "PROBE_SECONDS", 0.0)
