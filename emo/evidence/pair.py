"""What a study found of one teacher and one student, averaged and compared."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from emo.config import Study
from emo.config_methods import Family
from emo.errors import DataError
from emo.report.averages import MethodRuns, method_runs
from emo.report.bootstrap import AVERAGE
from emo.report.contrasts import Contrast, read_differences
from emo.report.runs import TEACHER, UNDISTILLED, Run, pairs_of

SAME_DIFFERENCE = 1e-9


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """Results of one teacher and one student.

    Attributes:
        teacher: Name of the teacher.
        student: Name of the student.
        methods: Runs by method: the references, then the methods of the study.
        contrasts: Every method against the baseline and the undistilled student, sorted.
    """

    teacher: str
    student: str
    methods: Mapping[str, MethodRuns]
    contrasts: Sequence[Contrast]

    @property
    def families(self) -> list[Family]:
        """Families of the tasks, sorted."""
        return sorted(set(self.methods[TEACHER].families.values()))

    def against(self, baseline: str) -> dict[str, Contrast]:
        """Return the contrasts with a baseline on the average, the greatest first, by method."""
        return {
            each.method: each
            for each in self.contrasts
            if (each.baseline, each.family) == (baseline, AVERAGE)
        }


def collect_evidence(study: Study, runs: Sequence[Run], differences: Path) -> list[PairEvidence]:
    """Put runs and differences together by teacher and student.

    Args:
        study: The study.
        runs: All its runs.
        differences: Its ``differences.csv``.

    Raises:
        DataError: A run is missing, or the differences are not those of the runs.
    """
    contrasts = read_differences(differences)
    pairs = []
    for pair in pairs_of(runs):
        names = (TEACHER, UNDISTILLED, *study.study.methods)
        methods = {name: method_runs(runs, pair, name, study.study.tasks) for name in names}
        mine = [each for each in contrasts if (each.teacher, each.student) == pair]
        pairs.append(PairEvidence(*pair, methods, mine))
    _check(study, pairs, contrasts, differences)
    return pairs


def _check(
    study: Study, pairs: Sequence[PairEvidence], contrasts: Sequence[Contrast], path: Path
) -> None:
    """See that the file, which another study may have written, has these runs' differences."""
    expected = {}
    for pair in pairs:
        means = {name: _means(method) for name, method in pair.methods.items()}
        for baseline, method in product(
            (study.study.compare.baseline, UNDISTILLED), study.study.methods
        ):
            for family in means[baseline] if method != baseline else ():
                key = (pair.teacher, pair.student, family, method, baseline)
                expected[key] = means[method][family] - means[baseline][family]
    found = {
        (each.teacher, each.student, each.family, each.method, each.baseline): each.difference.mean
        for each in contrasts
    }
    for key in sorted(expected.keys() | found.keys()):
        wanted, there = expected.get(key, math.nan), found.get(key, math.nan)
        if not math.isclose(wanted, there, abs_tol=SAME_DIFFERENCE):
            raise DataError(
                f"{path} does not have the differences of this study's scores ({'/'.join(key)}: "
                f"{there}, by the scores {wanted}); make it again by `emo report`"
            )


def _means(method: MethodRuns) -> dict[str, float]:
    """Return the average of each family, and that of them."""
    families: dict[str, float] = {
        family: method.family(family).mean for family in method.families.values()
    }
    return {AVERAGE: method.average().mean, **families}
