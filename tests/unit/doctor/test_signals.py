"""Vectors, attention, widths, precision and adapters that are not what they should be."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel

from emo.attention import Recorder
from emo.config_models import TeacherSettings
from emo.doctor.adapters import check_adapters
from emo.doctor.attention import check_attention
from emo.doctor.collapse import check_vectors, effective_rank
from emo.doctor.finding import Difference
from emo.doctor.precision import check_dtype
from emo.doctor.subject import load_subject
from emo.doctor.widths import check_widths
from emo.losses import mean_cosine
from emo.models import prepare_model

from ...tiny_architectures import CONFIGS
from ...tiny_decoders import bert_words
from .conftest import TEXTS


def layer(subject):
    return subject.encoder.transformer.encoder.layer[1].output.dense


def test_nan_in_one_layer_fails_and_says_so(subject):
    found = subject("bert")
    layer(found).weight.data[0, 0] = float("nan")
    finding = check_vectors(found)
    assert finding.status == "failed"
    assert finding.measured == {"texts not finite": len(TEXTS)}
    for check in (check_widths, check_attention):
        assert check(found).status in ("failed", "passed")


def test_the_same_vector_for_every_text_fails(subject):
    found = subject("bert")
    inner = found.encoder.transformer
    inner.embeddings.word_embeddings.weight.data[:] = 0.01
    inner.embeddings.position_embeddings.weight.data[:] = 0.01
    finding = check_vectors(found)
    assert finding.status == "failed"
    assert finding.measured["mean cosine"] > 0.999


def test_vectors_on_a_line_fail(subject):
    """Half of them opposite to the others: far from alike, and yet but one direction."""
    found = subject("bert")
    vectors = found.together[8].vectors
    with torch.inference_mode():
        vectors[:] = vectors[:1]
        vectors[::2] *= -1
    finding = check_vectors(found)
    assert (finding.status, finding.measured["mean cosine"] < 0.1) == ("failed", True)


def test_measures_of_collapse_are_those_of_slow_loops():
    vectors = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    rows = vectors.double().numpy()
    cosines = [
        a @ b / math.sqrt((a @ a) * (b @ b))
        for i, a in enumerate(rows)
        for j, b in enumerate(rows)
        if i != j
    ]
    assert mean_cosine(vectors) == pytest.approx(np.mean(cosines), abs=1e-12)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    values = np.sqrt(np.linalg.eigvalsh(unit.T @ unit).clip(min=0))
    shares = [value / values.sum() for value in values if value > 0]
    entropy = -sum(share * math.log(share) for share in shares)
    assert effective_rank(vectors) == pytest.approx(math.exp(entropy), rel=1e-9)
    assert effective_rank(vectors[:1].repeat(4, 1)) == pytest.approx(1.0, abs=1e-5)


def test_differences_are_relative_and_nan_is_never_within(subject):
    rows = torch.tensor([[3.0, 4.0], [0.0, 2.0]])
    found = Difference.between(rows, rows + torch.tensor([[0.0, 0.5], [0.0, 0.0]]))
    assert found.largest == pytest.approx(0.1)
    assert found.cosine == pytest.approx((9 + 18) / 5 / math.hypot(3, 4.5))
    assert Difference.between(rows * 0, rows * 0) == Difference(0.0, 1.0)
    assert Difference.between(rows * 0, rows).cosine == 0
    tolerance = subject("bert").tolerance
    assert not Difference(math.nan, 1.0).within(tolerance)
    assert not Difference(0.0, math.nan).within(tolerance)


def test_an_architecture_without_capture_fails(tmp_path):
    sizes = CONFIGS["bert"] | {"vocab_size": 90, "max_position_embeddings": 60}
    torch.manual_seed(0)
    AutoModel.from_config(AutoConfig.for_model("deberta-v2", **sizes)).save_pretrained(
        tmp_path / "s"
    )
    bert_words().save_pretrained(tmp_path / "s")
    settings = TeacherSettings(source={"path": "x"}, max_length=40)
    prepare_model(settings, tmp_path / "s", tmp_path / "out")
    found = load_subject(tmp_path / "out", TEXTS, "float32")
    finding = check_attention(found)
    assert (finding.status, "DebertaV2Model" in finding.meaning) == ("failed", True)
    assert "choose a teacher whose attention can be captured" in finding.remedy


@pytest.mark.parametrize("part", ["rows", "importance"])
def test_attention_that_depends_on_the_batch_fails(subject, monkeypatch, part):
    true = getattr(Recorder, part)

    def counting(self, mask):
        return true(self, mask) * (mask.shape[1] if part == "importance" else 1.1)

    monkeypatch.setattr(Recorder, part, counting)
    finding = check_attention(subject("bert"))
    assert (finding.status, "is not that of the text" in finding.meaning) == ("failed", True)


def test_another_width_than_declared_fails(copied):
    folder = copied("bert")
    path = folder / "1_Pooling" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"embedding_dimension": 99}))
    finding = check_widths(load_subject(folder, TEXTS, "float32"))
    assert (finding.status, "width 99" in finding.meaning) == ("failed", True)


class Double(nn.Module):
    def forward(self, features):
        return features | {"sentence_embedding": 2 * features["sentence_embedding"]}


def test_lengths_other_than_1_behind_normalize_fail(subject):
    found = subject("bert")
    found.encoder.model.append(Double())
    finding = check_widths(found)
    assert (finding.status, "do not have length 1" in finding.meaning) == ("failed", True)
    plain = subject("bert")
    del plain.encoder.model[2]
    finding = check_widths(plain)
    assert (finding.status, "lengths of their own" in finding.meaning) == ("passed", True)


@pytest.mark.parametrize(
    ("angle", "status"), [(0.0, "passed"), (0.08, "warning"), (0.3, "failed"), (math.nan, "failed")]
)
def test_precision_is_judged_by_the_least_cosine(subject, angle, status):
    """One of the vectors is turned by an angle."""
    found = subject("bert", "bfloat16")
    vectors = found.together[8].vectors.clone()
    other = torch.linalg.qr(torch.stack([vectors[2], vectors[3]], 1))[0][:, 1]
    vectors[2] = math.cos(angle) * vectors[2] + math.sin(angle) * other
    found = replace(found, reference=replace(found.reference, vectors=vectors))
    finding = check_dtype(found)
    assert finding.status == status
    assert "may be slower than float32 on a CPU" in finding.meaning


def test_adapters_without_a_record_fail(subject, declare):
    found = subject("llm2vec")
    assert [a["change"] > 0.01 for a in found.record["adapters"]] == [True, True]
    found.record.pop("adapters")
    finding = check_adapters(found)
    assert (finding.status, finding.measured["declared"]) == ("failed", 2)
    assert check_adapters(declare(subject("bert"), adapters=[{"path": "x"}])).status == "failed"


@pytest.mark.parametrize("fault", [{"change": 0.0}, {"least_cosine": 0.9}])
def test_adapters_that_changed_nothing_or_too_much_fail(subject, fault):
    found = subject("llm2vec")
    found.record["adapters"][1] |= fault
    finding = check_adapters(found)
    assert (finding.status, finding.meaning[:9]) == ("failed", "adapter 2")


def test_an_adapter_left_in_the_folder_fails(copied):
    folder = copied("bert")
    found = load_subject(folder, TEXTS, "float32")
    (folder / "adapter_model.safetensors").write_bytes(b"")
    finding = check_adapters(found)
    assert (finding.status, "adapter_model.safetensors" in finding.meaning) == ("failed", True)
