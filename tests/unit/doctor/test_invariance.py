"""A teacher whose answer depends on the batch or the padding is told."""

import pytest
import torch
from sentence_transformers.sentence_transformer.modules import Pooling

from emo.doctor.invariance import check_batches, check_padding
from emo.doctor.passes import ask, lay_out

LAST = {
    "the last column": lambda mask: torch.full((len(mask),), mask.shape[1] - 1),
    "the number of tokens": lambda mask: mask.sum(1) - 1,
}


class ByIndex(Pooling):
    """Last-token pooling by a number of a column."""

    def __init__(self, width, which):
        super().__init__(width, "lasttoken")
        self.which = which

    def forward(self, features):
        states, mask = features["token_embeddings"], features["attention_mask"]
        return features | {
            "sentence_embedding": states[torch.arange(len(mask)), LAST[self.which](mask)]
        }


@pytest.fixture
def by_index(subject):
    def pool(which):
        found = subject("causal-last")
        found.encoder.model[1] = ByIndex(32, which)
        return found

    return pool


def test_pooling_of_the_last_column_depends_on_the_batch(by_index):
    finding = check_batches(by_index("the last column"))
    assert finding.status == "failed"
    assert finding.measured["vectors, batch 8: cosine"] < 0.9
    assert finding.measured["states, batch 8: difference"] < 1e-5
    assert "attention mask" in finding.remedy


def test_pooling_by_the_number_of_tokens_fails_on_the_left(by_index):
    """Right padding, which every pass uses, does not show it."""
    broken = by_index("the number of tokens")
    assert check_batches(broken).status == "passed"
    finding = check_padding(broken)
    assert (finding.status, "lasttoken" in finding.meaning) == ("failed", True)
    assert finding.measured["pooled on the left: cosine"] < 0.9


def test_attention_to_padding_is_found_by_batch_and_length(subject, monkeypatch):
    broken = subject("bert")
    inner = broken.encoder.transformer
    forward = inner.forward

    def everywhere(input_ids, attention_mask):
        return forward(input_ids, attention_mask=torch.ones_like(attention_mask))

    monkeypatch.setattr(inner, "forward", everywhere)
    assert check_batches(broken).status == "failed"
    finding = check_padding(broken)
    assert finding.status == "failed"
    assert "the length that a batch is padded to" in finding.meaning


def test_positions_from_the_left_matter_only_to_who_pads_there(subject):
    """BERT counts padding as positions, XLM-R and rotary decoders do not."""
    bert = subject("bert")
    finding = check_padding(bert)
    assert (finding.status, "counts padding" in finding.meaning) == ("passed", True)
    bert.encoder.model.tokenizer.padding_side = "left"
    assert check_padding(bert).status == "failed"
    for make in ("qwen3", "llm2vec"):
        found = subject(make)
        found.encoder.model.tokenizer.padding_side = "left"
        assert check_padding(found).status == "passed"


def test_in_low_precision_states_alone_are_no_failure(subject):
    found = subject("bert", "bfloat16")
    vectors = found.alone.vectors
    with torch.inference_mode():
        for state in found.together[8].states:
            state.mul_(1.2)
    assert check_batches(found).status == "warning"
    object.__setattr__(found, "dtype", "float32")
    assert check_batches(found).status == "failed"
    with torch.inference_mode():
        vectors.fill_(float("nan"))
    object.__setattr__(found, "dtype", "bfloat16")
    assert check_batches(found).status == "failed", "NaN is never the same"


def test_layouts_hold_the_same_tokens(subject):
    found = subject("bert")
    texts = found.tokenized[:3]
    for side in ("left", "right"):
        for length in (0, 60):
            ids, mask = lay_out(texts, 9, side, length)
            assert ids.shape == mask.shape == (3, max(length, *(len(t.input_ids) for t in texts)))
            for row, text in enumerate(texts):
                assert ids[row][mask[row]].tolist() == text.input_ids.tolist()
                assert (ids[row][~mask[row]] == 9).all()
                assert mask[row, 0 if side == "right" else -1]


def test_answers_come_in_the_order_of_the_texts(subject):
    found = subject("bert")
    said = ask(found.encoder, found.tokenized, 5)
    backwards = ask(found.encoder, found.tokenized[::-1], 3)
    torch.testing.assert_close(said.vectors, backwards.vectors.flip(0), atol=1e-5, rtol=0)
    assert [len(s) for s in said.states] == [len(t.input_ids) for t in found.tokenized]
    assert [len(s) for s in backwards.states] == [len(t.input_ids) for t in found.tokenized[::-1]]
