"""What several unit tests need and none should make twice."""

import shutil
from pathlib import Path

import pytest

from emo.distil import distil
from emo.tracking import _connect
from emo.tracking_uri import TrackingUri

from .tiny_training import inputs, settings


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database made once, since making it takes seconds."""
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        _connect(TrackingUri.resolve(None))
    return folder / "results" / "mlflow.db"


@pytest.fixture
def workdir(tmp_path: Path, empty_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE", raising=False)
    (tmp_path / "results").mkdir()
    shutil.copy(empty_store, tmp_path / "results")
    return tmp_path


@pytest.fixture(scope="session")
def undisturbed(tiny, tmp_path_factory):
    """The result of a whole training of each form, made once."""
    made = {}

    def run(form):
        if form not in made:
            folder = tmp_path_factory.mktemp(form)
            distil(settings(form), inputs(tiny, form), [], folder / "checkpoints", folder / "out")
            made[form] = folder
        return made[form] / "out"

    return run
