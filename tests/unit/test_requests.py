import pytest

from emo.config import EmoPaperSettings, EmoSettings, PooledSettings
from emo.distil import distil
from emo.errors import ConfigError
from emo.history import read_history
from emo.requests import RowRequest, SignalRequest, request_from_name, signal_request

from .tiny_training import inputs, settings


@pytest.mark.parametrize(
    "request_", [RowRequest("emo", 1, 8), RowRequest("emo", 12, 20), RowRequest("emo-paper", 2)]
)
def test_a_name_reads_back_to_its_request(request_):
    assert request_from_name(request_.name) == request_


def test_names():
    """The workflow's wildcard is emo(-paper)?-k\\d+(-m\\d+)?."""
    assert RowRequest("emo", 1, 8).name == "emo-k1-m8"
    assert RowRequest("emo-paper", 2).name == "emo-paper-k2"


def test_each_form_reads_its_own_map():
    assert RowRequest("emo", 1, 8).alignment == "mined"
    assert RowRequest("emo-paper", 1).alignment == "mined-types"


def test_what_the_forms_ask_for():
    assert signal_request(PooledSettings(form="pooled"), "sts") == SignalRequest()
    emo = signal_request(EmoSettings(form="emo", layers=2, rows=6), "classification")
    assert emo == SignalRequest("mined", RowRequest("emo", 2, 6))
    paper = EmoPaperSettings(form="emo-paper")
    assert signal_request(paper, "classification").rows == RowRequest("emo-paper", 1)
    assert signal_request(paper, "sts") == SignalRequest("mined-masses", RowRequest("emo-paper", 2))


def test_emo_asks_for_nothing_that_its_terms_do_not_use():
    """Teacher rows cost a teacher pass."""
    no_attention = signal_request(EmoSettings(form="emo", attention=0.0), "sts")
    assert no_attention == SignalRequest("mined", None)
    no_transport = signal_request(EmoSettings(form="emo", transport=0.0), "sts")
    assert no_transport == SignalRequest(None, RowRequest("emo", 1, 8))
    neither = EmoSettings(form="emo", attention=0.0, transport=0.0)
    assert signal_request(neither, "sts") == SignalRequest()


@pytest.mark.parametrize("zero", [{"attention"}, {"transport"}, {"attention", "transport"}])
def test_a_training_needs_no_more_than_its_method_asks_for(tiny, tmp_path, zero):
    """The rules make what is asked for, and only that."""
    method = EmoSettings(form="emo", **dict.fromkeys(zero, 0.0))
    asked = signal_request(method, "sts")
    given = inputs(
        tiny,
        alignment=tiny.alignment(asked.alignment) if asked.alignment else None,
        rows=tiny.rows(asked.rows.name) if asked.rows else None,
    )
    usual = settings("emo", steps=2).model_copy(
        update={"method": method, "layers": asked.rows.layers if asked.rows else 0}
    )
    distil(usual, given, [], tmp_path / "checks", tmp_path / "out")
    for record in read_history(tmp_path / "out" / "history.jsonl"):
        assert record["terms"].keys() == {*EmoSettings.weights} - zero


@pytest.mark.parametrize(
    "name", ["foo", "", "emo", "emo-k1", "emo-k0-m8", "emo-kx-m8", "emo-paper-k2-m3", "emo-k1-m8 "]
)
def test_a_bad_name_says_the_form_of_a_name(name):
    with pytest.raises(ConfigError, match=f"`{name}` names no attention rows; write emo-k1-m8"):
        request_from_name(name)


def test_methods_that_differ_in_weights_alone_share_their_signals():
    light, heavy = (EmoSettings(form="emo", transport=weight) for weight in (0.1, 3.0))
    assert signal_request(light, "sts") == signal_request(heavy, "sts")
