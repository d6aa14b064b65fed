"""What a batch of labelled rows holds, against the tokenizer called by hand."""

import numpy as np
import pytest
import torch

from emo.encoder import load_encoder
from emo.errors import DataError
from emo.supervised_rows import SplitRows
from emo.tuning.examples import Examples, collate

PAIRS = [("the old man sings", "a cat"), ("who", "the red house in the garden"), ("b", "c d")]
PAD = 1


@pytest.fixture(scope="module")
def tokenizer(tiny_models):
    return load_encoder(tiny_models.teacher, device=torch.device("cpu")).tokenizer()


def examples(tokenizer, texts, targets, joint=False):
    return Examples(SplitRows(texts, np.array(targets), 0), tokenizer, joint)


def ids(tokenizer, text):
    (tokens,) = tokenizer([text])
    return tokens.input_ids.tolist()


def read(batch, row):
    return batch["input_ids"][row][batch["mask"][row]].tolist()


def test_texts_apart_stand_side_behind_side(tokenizer):
    rows = examples(tokenizer, PAIRS, [1.5, 0.0, 5.0])
    batch = collate([rows[2], rows[0]], PAD)
    expected = ["b", "the old man sings", "c d", "a cat"]
    assert [read(batch, row) for row in range(4)] == [ids(tokenizer, text) for text in expected]
    assert batch["targets"].tolist() == [5.0, 1.5]
    assert batch["targets"].dtype == torch.float32
    assert (batch["input_ids"][~batch["mask"]] == PAD).all()


def test_joint_texts_are_one_sequence(tokenizer):
    rows = examples(tokenizer, PAIRS, [1, 0, 1], joint=True)
    batch = collate([rows[0], rows[1]], PAD)
    assert [read(batch, row) for row in range(2)] == [ids(tokenizer, pair) for pair in PAIRS[:2]]
    assert batch["targets"].tolist() == [1, 0]
    assert batch["targets"].dtype == torch.int64


@pytest.mark.parametrize("joint", [False, True])
def test_single_texts_are_what_they_are(tokenizer, joint):
    rows = examples(tokenizer, [("a cat",), ("who sings",)], [2, 0], joint)
    batch = collate([rows[0], rows[1]], PAD)
    assert [read(batch, row) for row in range(2)] == [
        ids(tokenizer, text) for text in ("a cat", "who sings")
    ]
    assert len(rows) == 2


def test_long_rows_come_first(tokenizer):
    assert examples(tokenizer, PAIRS, [1, 0, 1]).by_length() == [1, 0, 2]


def test_a_row_without_tokens_is_named():
    """A decoder's tokenizer may add no special token to nothing."""

    class Silent:
        def __call__(self, texts):
            return [type("Tokens", (), {"input_ids": np.array([])})() for _ in texts]

    with pytest.raises(DataError, match=r"makes no token of \('a cat',\); leave such rows out"):
        examples(Silent(), [("a cat",)], [0])
