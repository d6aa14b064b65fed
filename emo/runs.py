"""Every run of a study and where its files are, for the rules and the report alike."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from emo.config import Study
from emo.config_methods import Family
from emo.run_tags import RunKey

REFERENCE_SEED = 0
"""Reference rows are not trained, so they have no seed of their own."""


TUNING = "tuning"
"""What is tracked as the method of a tuning."""
TRIAL = "@"
"""Stands between a method and the learning rate it was tried with; no method has it in its name."""
NO_STUDENT = "-"
"""What is tracked as its student: it has none, and no student can be called so."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run with its files.

    Attributes:
        key: Which run.
        family: Family of its task.
        folder: Folder of ``scores.json`` and ``predictions.parquet``.
    """

    key: RunKey
    family: Family
    folder: str

    @property
    def files(self) -> list[str]:
        """The files that evaluating makes."""
        return [f"{self.folder}/scores.json", f"{self.folder}/predictions.parquet"]

    def entry(self) -> dict[str, Any]:
        """Return the run as the report reads it."""
        scores, predictions = self.files
        return asdict(self.key) | {
            "family": self.family,
            "scores": scores,
            "predictions": predictions,
        }


def study_runs(study: Study) -> list[PlannedRun]:
    """Return every run of a study: per teacher, student and task the references, then methods."""
    runs = []
    for teacher in study.study.teachers:
        for student in study.study.students:
            for task in study.study.tasks:
                runs += _task_runs(study, teacher, student, task)
    return runs


def reference_runs(study: Study, model: str, task: str) -> list[RunKey]:
    """Return the reference runs that one evaluation of an untrained model stands for."""
    folder = reference_folder(model, task)
    return [run.key for run in study_runs(study) if run.folder == folder]


def training_runs(
    study: Study, teacher: str, student: str, texts: str, method: str, seed: int
) -> list[RunKey]:
    """Return the runs that one training serves: those of every chosen task on its text set."""
    return [RunKey(teacher, student, task, method, seed) for task in study.judged_on(texts)]


def trial_runs(
    study: Study, teacher: str, student: str, texts: str, method: str, rate: str
) -> list[RunKey]:
    """Return the runs of a trial, which are tracked beside those that count."""
    assert study.search is not None
    keys = training_runs(study, teacher, student, texts, method, study.search.seed)
    return [replace(key, method=f"{method}{TRIAL}{rate}") for key in keys]


def tuning_runs(study: Study, teacher: str, texts: str) -> list[RunKey]:
    """Return the run of a teacher's tuning for a text set; none if it is not tuned."""
    task, tuning = study.tuned_on(teacher, texts), study.teachers[teacher].tuning
    if task is None or tuning is None:
        return []
    return [RunKey(teacher, NO_STUDENT, task, TUNING, tuning.seed)]


def reference_folder(model: str, task: str) -> str:
    """Return the folder of an untrained model's scores."""
    return f"results/reference/{model}/{task}"


def _task_runs(study: Study, teacher: str, student: str, task: str) -> list[PlannedRun]:
    family = study.tasks[task].family
    references = {"teacher": teacher, "undistilled": student}
    runs = [
        PlannedRun(
            RunKey(teacher, student, task, method, REFERENCE_SEED),
            family,
            reference_folder(model, task),
        )
        for method, model in references.items()
    ]
    for method in study.study.methods:
        for seed in study.study.seeds:
            folder = f"results/{teacher}/{student}/{task}/{method}/seed{seed}"
            runs.append(PlannedRun(RunKey(teacher, student, task, method, seed), family, folder))
    return runs
