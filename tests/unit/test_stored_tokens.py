"""Tokens on disk are the tokens in memory."""

import numpy as np
import pytest
import torch

from emo.encoder import load_encoder
from emo.store import ShardWriter
from emo.store.keys import packed_keys
from emo.stored_tokens import position_counts, store_tokens
from emo.texts import text_key

FIELDS = ("input_ids", "prompt", "special", "spans")


@pytest.fixture(scope="module")
def tokenized(tiny_models):
    tokenizer = load_encoder(tiny_models.student, device=torch.device("cpu")).tokenizer()
    return tokenizer(list(tiny_models.texts_read))


@pytest.fixture
def stored(tiny_models, tokenized, tmp_path):
    keys = [text_key(text) for text in tiny_models.texts_read]
    blocks = [slice(0, 10), slice(10, 11), slice(11, 24)]
    return store_tokens(tmp_path / "tokens", ((keys[b], tokenized[b]) for b in blocks))


def test_each_text_is_read_as_it_was(stored, tokenized):
    assert len(stored) == len(tokenized)
    for one, other in zip(stored, tokenized, strict=True):
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
            assert getattr(one, name).dtype == getattr(other, name).dtype
    for one, other in zip(stored[3:9:2], tokenized[3:9:2], strict=True):
        np.testing.assert_array_equal(one.input_ids, other.input_ids)
    with pytest.raises(IndexError):
        stored[len(tokenized)]


def test_what_is_known_without_reading(stored, tokenized, tiny_models):
    counts = [len(text.places) for text in tokenized]
    assert position_counts(stored).tolist() == position_counts(tokenized).tolist() == counts
    keys = packed_keys([text_key(text) for text in tiny_models.texts_read])
    np.testing.assert_array_equal(stored.keys, keys)


def test_tokens_that_are_there_are_not_made_again(stored, tmp_path, monkeypatch):
    monkeypatch.setattr(ShardWriter, "append", None)
    again = store_tokens(tmp_path / "tokens", iter([]))
    assert len(again) == len(stored)
