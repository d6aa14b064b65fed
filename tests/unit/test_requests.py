import re
from dataclasses import replace
from typing import get_args

import pytest

from emo.config_methods import AlignmentMethod, EmoPaperSettings, EmoSettings, PooledSettings
from emo.distil import distil
from emo.errors import ConfigError
from emo.history import read_history
from emo.requests import (
    ALIGNMENT_PATTERN,
    AlignmentRequest,
    RowRequest,
    SignalRequest,
    signal_request,
)

from ..tiny_models import EMO_ROWS, PAPER_ROWS
from .tiny_training import inputs, settings

EMO = RowRequest(AlignmentRequest("mined"), "text", 8, True, 1)
PAPER = RowRequest(AlignmentRequest("mined-types", "normalised"), "content", None, False, 2)


@pytest.mark.parametrize(
    "request_",
    [
        EMO,
        PAPER,
        replace(EMO, rows=20, layers=12),
        replace(EMO, layers=((0, 3), (11, 23))),
        replace(PAPER, map=AlignmentRequest("mined-dp", "normalised"), rows=3),
        replace(PAPER, map=AlignmentRequest("span"), layers=((1, 2),)),
    ],
)
def test_a_name_reads_back_to_its_request(request_):
    assert RowRequest.from_name(request_.name) == request_


@pytest.mark.parametrize("method", get_args(AlignmentMethod))
@pytest.mark.parametrize("text", ["original", "normalised"])
def test_an_alignment_name_reads_back_to_its_request(method, text):
    request = AlignmentRequest(method, text)
    assert AlignmentRequest.from_name(request.name) == request


def test_names():
    assert EMO.name == EMO_ROWS
    assert PAPER.name == PAPER_ROWS


def test_no_name_is_part_of_two_folders():
    """A wildcard that matched the front of another name would make its files from the wrong map."""
    assert re.fullmatch(ALIGNMENT_PATTERN, "mined.original")
    assert not re.fullmatch(ALIGNMENT_PATTERN, "mined-.original")
    assert not re.fullmatch(ALIGNMENT_PATTERN, "mined/original")


@pytest.mark.parametrize(
    ("layers", "expected"), [(1, [3]), (2, [2, 3]), (((1, 5), (0, 2)), [1, 0])]
)
def test_the_student_layers_of_a_request(layers, expected):
    assert replace(EMO, layers=layers).student_layers(4) == expected


def test_what_the_forms_ask_for():
    assert signal_request(PooledSettings(form="pooled"), "sts") == SignalRequest()
    emo = signal_request(EmoSettings(form="emo", layers=2, rows=6), "classification")
    assert emo == SignalRequest(AlignmentRequest("mined"), replace(EMO, rows=6, layers=2))
    paper = EmoPaperSettings(form="emo-paper")
    assert signal_request(paper, "classification").rows == replace(PAPER, layers=1)
    assert signal_request(paper, "sts") == SignalRequest(AlignmentRequest("mined-masses"), PAPER)


def test_named_layer_pairs_reach_the_request():
    emo = EmoSettings(form="emo", layers=[[0, 1], [1, 3]])
    assert signal_request(emo, "sts").rows.layers == ((0, 1), (1, 3))


def test_emo_asks_for_nothing_that_its_terms_do_not_use():
    """Teacher rows cost a teacher pass."""
    no_attention = signal_request(EmoSettings(form="emo", attention=0.0), "sts")
    assert no_attention == SignalRequest(AlignmentRequest("mined"), None)
    no_transport = signal_request(EmoSettings(form="emo", transport=0.0), "sts")
    assert no_transport == SignalRequest(None, EMO)
    neither = EmoSettings(form="emo", attention=0.0, transport=0.0)
    assert signal_request(neither, "sts") == SignalRequest()


@pytest.mark.parametrize("zero", [{"attention"}, {"transport"}, {"attention", "transport"}])
def test_a_training_needs_no_more_than_its_method_asks_for(tiny, tmp_path, zero):
    """The rules make what is asked for, and only that."""
    method = EmoSettings(form="emo", **dict.fromkeys(zero, 0.0))
    asked = signal_request(method, "sts")
    given = inputs(
        tiny,
        alignment=tiny.alignment(asked.alignment.name) if asked.alignment else None,
        rows=tiny.rows(asked.rows.name) if asked.rows else None,
    )
    usual = settings("emo", steps=2).model_copy(update={"method": method})
    distil(usual, given, [], tmp_path / "checks", tmp_path / "out")
    for record in read_history(tmp_path / "out" / "history.jsonl"):
        assert record["terms"].keys() == {"cosine", "relational", "attention", "transport"} - zero


@pytest.mark.parametrize(
    "name",
    [
        "foo",
        "",
        "emo-k1-m8",
        "original.mined.text.m8.paired",
        "original.mined-masses.text.m8.paired.k1",
        "original.mined.text.m8.paired.1-2-3",
        f"{EMO_ROWS} ",
    ],
)
def test_a_bad_name_says_the_form_of_a_name(name):
    with pytest.raises(ConfigError, match=f"`{re.escape(name)}` names no attention rows; write"):
        RowRequest.from_name(name)


@pytest.mark.parametrize("name", ["mined", "mind.original", "mined.original.k1"])
def test_a_bad_alignment_name_says_the_form_of_a_name(name):
    with pytest.raises(ConfigError, match=f"`{name}` names no alignment; write one like mined"):
        AlignmentRequest.from_name(name)


def test_methods_that_differ_in_weights_alone_share_their_signals():
    light, heavy = (EmoSettings(form="emo", transport=weight) for weight in (0.1, 3.0))
    assert signal_request(light, "sts") == signal_request(heavy, "sts")
