"""What a smaller store costs in score: one teacher, its states stored in full and compressed."""

from collections.abc import Sequence
from itertools import product

from emo.config import Study
from emo.config_store import StoreSettings
from emo.report.bootstrap import paired_difference, resample
from emo.report.differences import difference_sentence
from emo.report.results import PairResults


def compressed_teachers(study: Study) -> list[tuple[str, str]]:
    """Return the chosen teachers that differ in ``store`` alone, as (compressed, in full)."""
    chosen = {name: study.teachers[name] for name in study.study.teachers}
    models = {name: teacher.model_dump(exclude={"store"}) for name, teacher in chosen.items()}
    full = [name for name, teacher in chosen.items() if teacher.store == StoreSettings()]
    return [
        (name, other)
        for name, other in product(chosen, full)
        if name not in full and models[name] == models[other]
    ]


def compression_differences(study: Study, results: Sequence[PairResults]) -> list[str]:
    """Say for each student and method what a compressed store lost.

    Args:
        study: The study.
        results: All its results.

    Returns:
        Lines of a Markdown list; none when no teacher of the study is there in both forms.

    Raises:
        DataError: Predictions are missing, or do not give the score that was reported.
    """
    by_pair = {(each.teacher, each.student): each for each in results}
    lines = []
    for (small, full), student in product(compressed_teachers(study), study.study.students):
        compressed, base = by_pair[small, student], by_pair[full, student]
        for method in compressed.distilled:
            difference = paired_difference(
                resample(compressed.methods[method]), resample(base.methods[method])
            )
            lines.append(f"- {student} by {method}: {difference_sentence(small, full, difference)}")
    return lines
