"""What a smaller store costs in score: one teacher, its states stored in full and compressed."""

from collections.abc import Mapping
from itertools import product

from emo.config import Study
from emo.config_store import StoreSettings
from emo.report.bootstrap import Resampled, paired_difference
from emo.report.contrasts import Pair
from emo.report.differences import difference_sentence


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


def compression_differences(
    study: Study, resampled: Mapping[Pair, Mapping[str, Resampled]]
) -> list[str]:
    """Say for each student and method what a compressed store lost.

    Args:
        study: The study.
        resampled: Its methods by teacher and student.

    Returns:
        Lines of a Markdown list; none when no teacher of the study is there in both forms.

    Raises:
        DataError: Methods were judged on different items or trained with different seeds.
    """
    lines = []
    for (small, full), student in product(compressed_teachers(study), study.study.students):
        compressed, base = resampled[small, student], resampled[full, student]
        for method in study.study.methods:
            difference = paired_difference(compressed[method], base[method])
            lines.append(f"- {student} by {method}: {difference_sentence(small, full, difference)}")
    return lines
