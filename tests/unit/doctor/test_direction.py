"""Causal where both directions are declared or needed."""

import json

import pytest
from sentence_transformers.sentence_transformer.modules import Pooling

from emo.doctor.direction import check_direction
from emo.doctor.subject import load_subject

from .conftest import TEXTS


def test_a_causal_decoder_declared_bidirectional_fails(subject, declare):
    finding = check_direction(declare(subject("causal-last"), bidirectional=True))
    assert (finding.status, finding.measured["change alone"]) == ("failed", 0.0)
    assert "declared `bidirectional` and reads causally" in finding.meaning


def test_a_mark_that_was_lost_fails(copied):
    folder = copied("llm2vec")
    config = json.loads((folder / "config.json").read_text())
    assert config.pop("is_causal") is False
    (folder / "config.json").write_text(json.dumps(config))
    assert check_direction(load_subject(folder, TEXTS, "float32")).status == "failed"


def test_an_encoder_that_was_made_a_decoder_fails(copied):
    folder = copied("bert")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"is_decoder": True}))
    finding = check_direction(load_subject(folder, TEXTS, "float32"))
    assert (finding.status, "is an encoder" in finding.meaning) == ("failed", True)


@pytest.mark.parametrize("alone", [True, False])
def test_a_direction_that_depends_on_the_batch_fails(subject, monkeypatch, alone):
    """Masks left out where nothing is padded have made models causal."""
    found = subject("causal-last")
    inner = found.encoder.transformer
    forward = inner.forward

    def changing(input_ids, attention_mask):
        monkeypatch.setattr(inner.config, "is_causal", (len(input_ids) == 1) is not alone, False)
        return forward(input_ids=input_ids, attention_mask=attention_mask)

    monkeypatch.setattr(inner, "forward", changing)
    finding = check_direction(found)
    assert finding.status == "failed"
    assert ("only alone" if alone else "only beside") in finding.meaning


@pytest.mark.parametrize(
    ("pooling", "status"),
    [("lasttoken", "passed"), ("weightedmean", "passed"), ("mean", "warning"), ("cls", "failed")],
)
def test_a_causal_decoder_is_judged_by_its_pooling(subject, pooling, status):
    found = subject("causal-last")
    found.encoder.model[1] = Pooling(32, pooling)
    assert check_direction(found).status == status
