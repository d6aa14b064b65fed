"""What a reader of scores must know of them."""

from emo.config import Study


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
