from pathlib import Path

import pytest

from emo.errors import ConfigError
from emo.tracking_uri import TrackingUri


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


def test_default_is_an_absolute_database(tmp_path: Path) -> None:
    uri = TrackingUri.resolve(None)
    assert uri == TrackingUri(f"sqlite:///{tmp_path}/results/mlflow.db", chosen=False)
    assert uri.database == tmp_path / "results" / "mlflow.db"


def test_argument_goes_before_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://server:5000")
    assert TrackingUri.resolve(None) == TrackingUri("http://server:5000", chosen=True)
    assert TrackingUri.resolve(None).database is None
    assert TrackingUri.resolve("sqlite:////abs/x.db").value == "sqlite:////abs/x.db"


@pytest.mark.parametrize("value", ["./mlruns", "file:///tmp/mlruns", "sqlite://", "htp://x"])
def test_address_that_mlflow_refuses_is_named(value: str) -> None:
    with pytest.raises(ConfigError, match=f"'{value}'.*MLFLOW_TRACKING_URI.*plain folders"):
        TrackingUri.resolve(value)


@pytest.mark.parametrize(
    ("value", "public"),
    [
        ("postgresql+psycopg2://me:pa@ss@db/x", "postgresql+psycopg2://db/x"),
        ("sqlite:////abs/x.db", "sqlite:////abs/x.db"),
        ("http://server:5000", "http://server:5000"),
    ],
)
def test_public_address_hides_the_password_alone(value: str, public: str) -> None:
    assert TrackingUri(value, chosen=True).public == public
