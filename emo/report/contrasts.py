"""Every method against a baseline, corrected for the number of methods, and ``differences.csv``."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from emo.config import Comparison
from emo.errors import DataError
from emo.report.bootstrap import (
    ALPHA,
    AVERAGE,
    Difference,
    Resampled,
    paired_difference,
    resample,
)
from emo.report.csv_table import write_csv
from emo.report.holm import holm
from emo.report.results import PairResults
from emo.report.runs import UNDISTILLED

Verdict = Literal["better", "worse", "no significant difference"]
Pair = tuple[str, str]
"""A teacher and a student."""

WORDS = ("teacher", "student", "family", "method", "baseline", "verdict", "seeds")
"""Columns of words, which may look like numbers."""
COLUMNS = (
    "teacher",
    "student",
    "family",
    "method",
    "baseline",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
    "verdict",
    "undefined",
    "seeds",
)


@dataclass(frozen=True, slots=True)
class Contrast:
    """A method against a baseline, on a family of tasks or on the average of families.

    Attributes:
        teacher: Name of the teacher.
        student: Name of the student.
        family: The family, or ``average``.
        method: Name of the method.
        baseline: What it is compared with: a method, or ``undistilled``.
        difference: How much higher the method scores.
        p_holm: Its p-value, corrected over all methods against that baseline on that family.
        seeds: Seeds of the method.
    """

    teacher: str
    student: str
    family: str
    method: str
    baseline: str
    difference: Difference
    p_holm: float
    seeds: tuple[int, ...]

    @property
    def verdict(self) -> Verdict:
        """What the corrected p-value says of the method."""
        if self.p_holm >= ALPHA:
            return "no significant difference"
        return "better" if self.difference.mean > 0 else "worse"


def resampled_methods(results: PairResults) -> dict[str, Resampled]:
    """Resample the undistilled student and each method of one teacher and one student.

    Raises:
        DataError: Predictions are missing, or do not give the score that was reported.
    """
    return {name: resample(results.methods[name]) for name in (UNDISTILLED, *results.distilled)}


def study_contrasts(
    compare: Comparison, resampled: Mapping[Pair, Mapping[str, Resampled]]
) -> list[Contrast]:
    """Compare every method with the study's baseline and with the undistilled student.

    Args:
        compare: Names the baseline.
        resampled: By teacher and student, see :func:`resampled_methods`.

    Returns:
        The contrasts of each teacher and student, baseline and family together, the average first;
        among them those of the greatest difference come first.

    Raises:
        DataError: Methods were judged on different items or trained with different seeds.
    """
    contrasts = []
    for pair, methods in resampled.items():
        for baseline in (compare.baseline, UNDISTILLED):
            families = sorted(methods[baseline].drawn, key=lambda name: (name != AVERAGE, name))
            for family in families:
                contrasts += _against(pair, methods, baseline, family)
    return contrasts


def contrasts_table(contrasts: Sequence[Contrast]) -> pd.DataFrame:
    """Return the contrasts, one a line; ``seeds`` are separated by spaces."""
    rows = []
    for contrast in contrasts:
        row = asdict(contrast) | asdict(contrast.difference)
        row |= {
            "difference": contrast.difference.mean,
            "verdict": contrast.verdict,
            "seeds": " ".join(map(str, contrast.seeds)),
        }
        rows.append([row[column] for column in COLUMNS])
    return pd.DataFrame(rows, columns=[*COLUMNS])


def write_differences(contrasts: Sequence[Contrast], out: Path) -> None:
    """Write the table."""
    write_csv(contrasts_table(contrasts), out)


def read_differences(path: Path) -> list[Contrast]:
    """Read what :func:`write_differences` wrote.

    Raises:
        DataError: The file is missing or is no such table.
    """
    try:
        table = pd.read_csv(path, dtype=dict.fromkeys(WORDS, str), keep_default_na=False)
        return [_contrast(row) for row in table.to_dict("records")]
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{path}: no table of differences ({error!r}); make it again by `emo report`"
        ) from error


def _contrast(row: Mapping[Hashable, Any]) -> Contrast:
    difference = Difference(
        mean=float(row["difference"]),
        low=float(row["low"]),
        high=float(row["high"]),
        p=float(row["p"]),
        undefined=int(row["undefined"]),
    )
    return Contrast(
        teacher=row["teacher"],
        student=row["student"],
        family=row["family"],
        method=row["method"],
        baseline=row["baseline"],
        difference=difference,
        p_holm=float(row["p_holm"]),
        seeds=tuple(int(seed) for seed in row["seeds"].split()),
    )


def _against(
    pair: Pair, methods: Mapping[str, Resampled], baseline: str, family: str
) -> list[Contrast]:
    """Compare the methods of one teacher and student with one baseline on one family."""
    compared = [name for name in methods if name not in (baseline, UNDISTILLED)]
    differences = [paired_difference(methods[name], methods[baseline], family) for name in compared]
    corrected = holm([difference.p for difference in differences])
    contrasts = [
        Contrast(*pair, family, name, baseline, difference, p_holm, methods[name].seeds)
        for name, difference, p_holm in zip(compared, differences, corrected, strict=True)
    ]
    return sorted(contrasts, key=lambda contrast: (-contrast.difference.mean, contrast.method))
