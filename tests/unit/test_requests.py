import pytest

from emo.config import EmoPaperSettings, EmoSettings, PooledSettings
from emo.requests import RowRequest, SignalRequest, request_from_name, signal_request


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


def test_methods_that_differ_in_weights_alone_share_their_signals():
    light, heavy = (EmoSettings(form="emo", transport=weight) for weight in (0.1, 3.0))
    assert signal_request(light, "sts") == signal_request(heavy, "sts")
