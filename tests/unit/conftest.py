"""What several unit tests need and none should make twice."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from emo.distil import distil
from emo.tracking import _connect
from emo.tracking_uri import TrackingUri

from ..tiny_tasks import write_questions, write_similar
from .tiny_labelled import make_labelled
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


@dataclass(frozen=True)
class Tasks:
    """Prepared tasks by family."""

    folder: Path

    def __call__(self, family):
        return self.folder / family


@pytest.fixture(scope="session")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    write_questions(folder / "classification")
    write_similar(folder / "sts")
    write_similar(folder / "pairs", "pairs")
    return Tasks(folder)


@pytest.fixture(scope="session")
def labelled(tiny_models, tasks, tmp_path_factory):
    """A labelled text set of a family with all that trainings on it read, made once."""
    made = {}

    def labelled(family):
        if family not in made:
            folder = tmp_path_factory.mktemp(f"labelled-{family}")
            made[family] = make_labelled(family, tasks(family), tiny_models, folder)
        return made[family]

    return labelled
