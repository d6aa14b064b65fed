"""What a reader of scores must know of them."""

from pathlib import Path

from emo.config import Study
from emo.jobs import study_jobs
from emo.outputs import read_json


def over_seeds_words(study: Study) -> str:
    """Say how scores of several seeds were put together, or that there was one seed."""
    seeds = sorted(study.study.seeds)
    if len(seeds) == 1:
        return (
            f"Methods were trained with one seed ({seeds[0]}): how much scores vary over seeds is "
            "unknown, and the intervals say nothing about other seeds."
        )
    return (
        "Scores of methods are mean ± standard deviation over the seeds "
        f"{', '.join(map(str, seeds))}."
    )


def who_answers(study: Study) -> list[str]:
    """Say which scores are those of heads, where some are."""
    chosen = study.study
    labelled = [task for task in chosen.tasks if study.texts[study.tasks[task].texts].labelled]
    if not labelled:
        return []
    told = (
        f"Students of {', '.join(labelled)} were trained on labelled rows, and test rows "
        "are answered by the head that each was trained with. Undistilled students have none: "
        "they are judged by their frozen embeddings, classes by a logistic regression, pairs by "
        "the cosine of the two texts"
    )
    plain = [name for name in chosen.teachers if study.teachers[name].tuning is None]
    if plain:
        told += f", and so are the teachers that were not tuned: {', '.join(plain)}"
    return [f"{told}."]


def who_collapsed(study: Study) -> list[str]:
    """Say which students collapsed and were kept, in a study that keeps them.

    Raises:
        DataError: A record of a training is missing or damaged.
    """
    if study.training.collapsed != "keep":
        return []
    students = [
        f"{job.teacher}/{job.student}/{job.texts}/{job.method}/seed{job.seed}"
        for job in study_jobs(study, lambda store: [])
        if job.rule == "distil" and read_json(Path(job.result)).get("collapsed", False)
    ]
    if not students:
        return []
    return [
        "These students collapsed, which means that their vectors are nearly all alike, and were "
        f"judged as they are: {', '.join(students)}."
    ]
