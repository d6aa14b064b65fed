"""A finished study of made-up predictions, reported and tracked."""

import shutil
from pathlib import Path

import pytest

from emo.outputs import read_json, write_json
from emo.report.contrasts import resampled_methods, study_contrasts, write_differences
from emo.report.results import collect
from emo.report.runs import load_runs
from emo.report.speeds import load_speeds
from emo.run_tags import RunKey
from emo.runs import study_runs
from emo.tracking import RunGroup

from ..report.conftest import write_study

PAGE = "Prose.\n\n<!-- table: switches -->\n\nold\n\n<!-- end -->\n\nMore prose.\n"


def track(study, runs):
    """Track the scores of runs, each training under its own identity."""
    by_identity = {}
    for run in runs:
        identity = f"{run.method}{run.seed}"
        by_identity.setdefault(identity, []).append(run)
    for identity, group in by_identity.items():
        keys = [RunKey(run.teacher, run.student, run.task, run.method, run.seed) for run in group]
        with RunGroup(keys, identity, {}, {}) as tracked:
            for key, run in zip(keys, group, strict=True):
                tracked.log_scores(key, run.metrics)


def loaded(study):
    return load_runs([run.entry() for run in study_runs(study)])


@pytest.fixture(scope="session")
def kept(tmp_path_factory, empty_store):
    """The study's folder, made once."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        Path("results").mkdir()
        shutil.copy(empty_store, "results")
        study = write_study()
        for path in Path("results").rglob("training.json"):
            write_json(path, read_json(path) | {"resumed_from_step": 0})
        runs = loaded(study)
        track(study, runs)
        speeds = {name: Path(f"results/speed/{name}.json") for name in ("e5", "minilm")}
        (results,) = collect(study.study, runs, load_speeds(speeds))
        contrasts = study_contrasts(
            study.study.compare, {results.names: resampled_methods(results)}
        )
        write_differences(contrasts, Path("results/differences.csv"))
        Path("docs").mkdir()
        Path("docs/evidence.md").write_text(PAGE)
    return folder, study


@pytest.fixture
def study(kept, tmp_path, monkeypatch):
    """A copy of it to work in."""
    folder, study = kept
    shutil.copytree(folder, tmp_path / "study")
    monkeypatch.chdir(tmp_path / "study")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return study
