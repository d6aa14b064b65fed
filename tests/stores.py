"""Whole stores, by the stages that make their shards and the one that gathers them."""

from emo.attention_rows import store_rows
from emo.store import STORE_FILE, ShardName, gather
from emo.teach import teach

SHARDS = 2


def make_store(teacher, texts, folder, shards=SHARDS, **options):
    """Store the teacher's signals for a text set."""
    for part in _parts(folder, shards):
        teach(teacher, texts, part, **options)
    return _gathered(folder, shards)


def make_rows(request, folder, shards=SHARDS, **files):
    """Store attention rows for a text set."""
    for part in _parts(folder, shards):
        store_rows(request, out=part, **files)
    return _gathered(folder, shards)


def _gathered(folder, shards):
    gather(_parts(folder, shards), folder / STORE_FILE)
    return folder / STORE_FILE


def _parts(folder, shards):
    return [folder / str(ShardName(shards, number + 1)) for number in range(shards)]
