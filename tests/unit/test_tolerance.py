import logging

import pytest

from emo import tolerance
from emo.errors import ConfigError
from emo.tolerance import Tolerance

from ..clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(tolerance, "time", clock)
    return clock


def test_failure_warns_once_and_pauses(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    calls = []

    def action() -> None:
        calls.append(clock.now)
        raise OSError("disk full\nreally")

    tolerant = Tolerance("not written (%s): free some space")
    tolerant.attempt(action)
    tolerant.attempt(action)
    clock.now += 61
    tolerant.attempt(action)
    tolerant.attempt(action, last_chance=True)
    assert calls == [100.0, 161.0, 161.0]
    assert caplog.messages == ["not written (OSError: disk full): free some space"]
    assert caplog.records[0].levelno == logging.WARNING


def test_what_the_user_must_mend_is_raised(clock: Clock) -> None:
    def action() -> None:
        raise ConfigError("wrong key")

    with pytest.raises(ConfigError, match="wrong key"):
        Tolerance("%s").attempt(action)
