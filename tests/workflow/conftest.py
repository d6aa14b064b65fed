"""The one full run of the tiny study; every other test works on copies of it."""

from dataclasses import dataclass

import pytest

from .study_folder import Outcome, StudyFolder
from .tiny_data import write_study


@dataclass(frozen=True)
class FullRun:
    """A finished study and what Snakemake said on the way."""

    folder: StudyFolder
    outcome: Outcome


@pytest.fixture(scope="session")
def full_run(tmp_path_factory) -> FullRun:
    """The whole tiny study, run once."""
    folder = StudyFolder(tmp_path_factory.mktemp("study"))
    write_study(folder.path)
    outcome = folder.snakemake()
    if outcome.code:
        pytest.fail(f"the tiny study did not run:\n{outcome.output[-8000:]}", pytrace=False)
    return FullRun(folder, outcome)


@pytest.fixture(scope="session")
def finished(full_run) -> StudyFolder:
    """The finished study, to be read only."""
    return full_run.folder


@pytest.fixture
def study(finished, tmp_path) -> StudyFolder:
    """A copy of the finished study, to be disturbed."""
    return finished.copy_to(tmp_path / "study")
