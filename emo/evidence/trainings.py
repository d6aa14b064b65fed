"""The trainings that a study's students come from, and what their search chose."""

from collections.abc import Sequence
from pathlib import Path

from emo.config import Study
from emo.config_training import TrainingSettings
from emo.jobs import Job, search_jobs
from emo.report.runs import Run
from emo.search import read_choice


def training_job(study: Study, run: Run) -> Job | None:
    """Return the training that a run's student comes from; a reference has none."""
    if run.method not in study.study.methods:
        return None
    texts = study.tasks[run.task].texts
    return Job("distil", run.teacher, run.student, texts, method=run.method, seed=run.seed)


def searched(study: Study, training: Job) -> Sequence[Job]:
    """Return the jobs of the search before a training, the choice last; none without a search."""
    return [
        *search_jobs(study, training.teacher, training.student, training.texts, training.method)
    ]


def budget(study: Study, training: Job) -> TrainingSettings:
    """Return what a training was to have: the study's budget with the rate that was chosen.

    Raises:
        DataError: The choice is missing or damaged.
    """
    search = searched(study, training)
    if not search:
        return study.training
    rate = read_choice(Path(search[-1].result)).learning_rate
    return study.training.model_copy(update={"learning_rate": rate})
