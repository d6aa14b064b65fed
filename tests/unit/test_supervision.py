"""Labels and the teacher's own answers, as a training reads them."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional

from emo.assembly import _require_summary
from emo.encoder import load_encoder, pad
from emo.errors import ConfigError, DataError
from emo.labelled_texts import load_targets
from emo.outputs import read_json
from emo.supervision import open_supervision
from emo.texts import load_texts
from emo.tuned_head import load_tuned_head

from .tiny_labelled import METHODS, inputs

FAMILIES = ["classification", "pairs", "sts"]


def opened(files, name="logit", **changes):
    return open_supervision(METHODS[name], files.family, inputs(files, name, **changes))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_teachers_answers_are_those_of_its_own_pass(labelled, family):
    """Without the store: the tuned model reads each row anew, and the head is applied by hand."""
    files = labelled(family)
    encoder = load_encoder(files.teacher, device=torch.device("cpu")).eval()
    tokenized = encoder.tokenizer()(load_texts(files.texts).texts)
    with torch.no_grad():
        vectors = torch.cat([encoder(*pad([text], encoder.pad_id)).vectors for text in tokenized])
    scaled = functional.normalize(vectors) * vectors.shape[1] ** 0.5
    head = load_file(files.tuning.with_name("head.safetensors"))
    if family == "sts":
        hidden = torch.tanh(scaled @ head["head.dense.weight"].T + head["head.dense.bias"])
        expected = (hidden @ head["head.score.weight"].T + head["head.score.bias"]).squeeze(1)
    else:
        expected = scaled @ head["classes.weight"].T + head["classes.bias"]
    answers = opened(files).teacher_logits
    torch.testing.assert_close(answers, expected, atol=2e-4, rtol=1e-4)
    assert answers.std(dim=0).min() > 1e-3, "the head tells rows apart"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_has_the_labels_and_answers_of_its_texts(labelled, family):
    files = labelled(family)
    supervision, targets = opened(files), load_targets(files.texts)
    rows = [5, 0, len(targets.values) - 1]
    tensors = supervision.tensors(rows)
    assert tensors["labels"].tolist() == targets.values[rows].tolist()
    assert tensors["labels"].is_floating_point() == (family == "sts")
    assert torch.equal(tensors["teacher_logits"], supervision.teacher_logits[rows])
    assert opened(files, "sft").tensors(rows).keys() == {"labels"}, "nobody asks the teacher"


def test_texts_are_asked_about_in_any_number(labelled, monkeypatch):
    whole = opened(labelled("pairs")).teacher_logits
    monkeypatch.setattr("emo.supervision._VECTORS_TOGETHER", 5)
    torch.testing.assert_close(opened(labelled("pairs")).teacher_logits, whole)


def test_a_set_without_labels_supervises_nothing(tiny, labelled):
    files = labelled("sts")
    assert opened(files, "sft", texts=tiny.texts) is None
    with pytest.raises(ConfigError, match=r"has no labels, .* no head for `logits`"):
        opened(files, texts=tiny.texts)


def test_a_method_without_head_terms_is_refused(labelled):
    method = METHODS["pooled"].model_copy(update={"task": 0.0})
    files = labelled("classification")
    with pytest.raises(ConfigError, match="without `task` or `logits` the student's head would"):
        open_supervision(method, files.family, inputs(files, "pooled"))


@pytest.mark.parametrize(("family", "other"), [("classification", "sts"), ("sts", "pairs")])
def test_labels_of_another_family_are_refused(labelled, family, other):
    files = labelled(family)
    held = "scores" if family == "sts" else "classes"
    with pytest.raises(ConfigError, match=f"holds {held}, which are not of the family {other}"):
        open_supervision(METHODS["sft"], other, inputs(files, "sft"))


def test_a_missing_head_is_asked_for(labelled, tmp_path):
    files = labelled("classification")
    with pytest.raises(ConfigError, match="needs the head of a tuned teacher; give --tuning"):
        opened(files, tuning=None)
    shutil.copy(files.tuning, tmp_path)
    with pytest.raises(DataError, match=r"head\.safetensors is missing; tune the teacher again"):
        opened(files, tuning=tmp_path / "tuning.json")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"identity": "0" * 16}, "the head of another tuning than that of the teacher in"),
        ({"labels": ["place", "person", "thing"]}, "apart, the text set person, place, thing; tun"),
    ],
)
def test_a_head_of_other_labels_or_another_tuning_is_refused(labelled, tmp_path, changes, said):
    files = labelled("classification")
    shutil.copy(files.tuning.with_name("head.safetensors"), tmp_path)
    record = tmp_path / "tuning.json"
    record.write_text(json.dumps(read_json(files.tuning) | changes))
    with pytest.raises(DataError, match=said):
        opened(files, tuning=record)


@pytest.mark.parametrize("family", ["pairs", "sts"])
def test_a_head_that_reads_texts_apart_is_refused(labelled, tmp_path, family):
    record = tmp_path / "tuning.json"
    tuning = read_json(labelled(family).tuning)
    record.write_text(json.dumps(tuning | {"settings": tuning["settings"] | {"pairs": "apart"}}))
    with pytest.raises(DataError, match=r"apart, and has no head .*`tuning\.pairs: joint`"):
        load_tuned_head(record, 48)


def test_scores_keep_what_float32_can_hold(labelled):
    targets = load_targets(labelled("sts").texts).values
    assert np.ptp(targets) > 1
    assert targets.max() <= 5


@pytest.mark.parametrize(("special", "ahead"), [(False, True), (True, False)])
def test_a_student_whose_first_token_says_nothing_of_a_text_has_no_head(
    labelled, monkeypatch, special, ahead
):
    encoder = load_encoder(labelled("classification").student, device=torch.device("cpu"))
    tokenized = encoder.tokenizer()(["a text"])
    _require_summary(encoder, tokenized)
    if not ahead:
        monkeypatch.setattr("emo.assembly.sees_ahead", lambda model: False)
    tokenized[0].special[0] = special
    with pytest.raises(ConfigError, match="reads the state of the student's first token"):
        _require_summary(encoder, tokenized)
