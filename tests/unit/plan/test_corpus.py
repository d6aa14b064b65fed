"""The batches that are counted are those that a teacher pass makes."""

from types import SimpleNamespace

import pytest

from emo.encoder import load_encoder
from emo.errors import DataError
from emo.plan import corpus as module
from emo.plan.corpus import read_corpus, sample_order, spread_order
from emo.store import ShardName
from emo.teacher_pass import CHUNK_TEXTS, teacher_batches
from emo.texts import TextSet, load_texts, save_texts, text_chunks, text_key

from .conftest import SHARDS, TEXTS


@pytest.fixture(scope="module")
def encoder(tiny_models):
    return load_encoder(tiny_models.teacher).eval()


def made(texts, encoder, shards, size=CHUNK_TEXTS):
    """Every batch of the real passes: its texts and its tensor's shape."""
    tokenizer = encoder.tokenizer()
    for number in range(shards):
        rows = ShardName(shards, number + 1).rows(TEXTS)
        for chunk in text_chunks(texts, rows, size):
            for batch in teacher_batches(tokenizer(chunk.texts), encoder):
                keys = [chunk.keys[row] for row in batch.rows]
                yield keys, tuple(batch.input_ids.shape), batch


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_every_batch_is_foreseen(texts, encoder, shards):
    corpus = read_corpus(texts, shards, encoder.tokenizer())
    real = list(made(texts, encoder, shards))
    assert (corpus.texts, corpus.counted, corpus.chunks) == (TEXTS, TEXTS, shards)
    foreseen = [
        (batch.texts.keys, (len(batch.tokenized), batch.longest)) for batch in corpus.batches
    ]
    assert foreseen == [(keys, shape) for keys, shape, _ in real]
    assert corpus.padded == sum(batch.mask.numel() for _, _, batch in real)
    assert corpus.total(lambda text: len(text.places)) == sum(
        int(batch.read.sum()) for _, _, batch in real
    )


def test_a_batch_alone_is_the_batch_that_it_was_among_others(texts, encoder):
    corpus = read_corpus(texts, SHARDS, encoder.tokenizer())
    for planned in sample_order(corpus.batches):
        (batch,) = teacher_batches(planned.tokenized, encoder)
        assert batch.rows == list(range(len(planned.tokenized)))
        assert batch.mask.numel() == planned.padded


def test_some_chunks_stand_for_all_of_a_large_set(texts, encoder, monkeypatch):
    """Evenly spread ones: texts grow longer along the set."""
    whole = read_corpus(texts, SHARDS, encoder.tokenizer())
    monkeypatch.setattr(module, "CHUNK_TEXTS", 20)
    monkeypatch.setattr(module, "MOST_CHUNKS", 10)
    some = read_corpus(texts, SHARDS, encoder.tokenizer())
    assert (some.texts, some.counted, some.chunks) == (TEXTS, 200, 20)
    for corpus in (whole, some):
        assert corpus.total(lambda text: 1) == TEXTS
    tokens = [corpus.total(lambda text: len(text.places)) for corpus in (whole, some)]
    assert tokens[1] == pytest.approx(tokens[0], rel=0.05)


def test_a_set_without_texts_is_refused(encoder, tmp_path):
    empty = tmp_path / "texts.parquet"
    save_texts(TextSet([], []), empty)
    with pytest.raises(DataError, match="holds no text"):
        read_corpus(empty, SHARDS, encoder.tokenizer())


@pytest.mark.parametrize("texts", [["a cat", "a dog"], [("a cat", "a dog"), ("a", "b")]])
def test_the_sample_is_a_text_set_like_the_one_it_is_from(texts, tmp_path):
    keys = [text_key(text) for text in texts]
    save_texts(TextSet(texts, keys), tmp_path / "sample.parquet")
    assert load_texts(tmp_path / "sample.parquet") == TextSet(texts, keys)


def test_every_beginning_of_the_order_is_evenly_spread():
    for count in (1, 2, 7, 64, 100):
        order = spread_order(count)
        assert sorted(order) == list(range(count))
        for most in range(1, count + 1):
            chosen = sorted(order[:most])
            gaps = [b - a for a, b in zip([-1, *chosen], [*chosen, count], strict=True)]
            assert max(gaps) <= 4 * count / most + 1


def test_a_sample_has_batches_of_all_lengths():
    """Batches of a chunk grow shorter: every eighth of these would be as long as the first."""
    batches = [SimpleNamespace(longest=length) for _ in range(8) for length in range(8, 0, -1)]
    assert sorted(batch.longest for batch in sample_order(batches)[:8]) == list(range(1, 9))
