"""Whether two methods differ by more than chance: a paired bootstrap over test items and seeds.

Each resample draws the test items of every task with replacement, the same items for both
methods, computes both main metrics anew and averages them within families and over families. Then
it draws the seeds with replacement. What is shared is drawn together:

- tasks with the same test texts (one sentence set judged in two ways) share their items;
- one draw of seeds serves all tasks, since tasks may be judged on one and the same student; and
  it serves both methods when they were trained with the same seeds.

The interval is the percentile interval of the differences. With few seeds it is a little narrow
(a bootstrap of n seeds understates their variance by the factor (n - 1) / n), and with one seed
it says nothing about other seeds. The p-value inverts this interval: it is twice the share of the
resamples on the far side of zero. Shapes: W resamples, S seeds, N items.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emo.errors import DataError
from emo.report.averages import MethodRuns
from emo.report.predictions import read_predictions, require_same_items
from emo.report.runs import Run
from emo.weighted_metrics import MAIN_METRICS

RESAMPLES = 5000
"""The least p is 2 / (1 + resamples), so the correction for 50 methods can still go below 0.05."""
ALPHA = 0.05
"""Of the intervals, which hold 95 %, and of verdicts."""
AVERAGE = "average"
"""What stands for the average of families where a family is named."""
BLOCK_CELLS = 400_000
"""Resamples are scored in blocks of about this many counts, which a processor's cache holds."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Resampled:
    """One method's averages, on all items and on resamples of them.

    Attributes:
        method: Its name.
        seeds: Its seeds.
        items: Digest of the test texts of each task.
        observed: By family and :data:`AVERAGE`: average of each seed, ``(S,)``.
        drawn: By the same: average of each resample of items and seed, ``(W, S)``; NaN where a
            metric of the resample is undefined.
    """

    method: str
    seeds: tuple[int, ...]
    items: Mapping[str, str]
    observed: Mapping[str, Floats]
    drawn: Mapping[str, Floats]

    @property
    def resamples(self) -> int:
        """How many there are."""
        return len(self.drawn[AVERAGE])


@dataclass(frozen=True, slots=True)
class Difference:
    """How much higher one method's average is than another's.

    Attributes:
        mean: The difference on the whole test sets, mean over seeds.
        low: Lower end of the 95 % interval.
        high: Upper end.
        p: Two-sided p-value, see :func:`sign_p_value`.
        undefined: Resamples left out, since a metric was undefined on them.
    """

    mean: float
    low: float
    high: float
    p: float
    undefined: int

    @property
    def significant(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0 or self.high < 0


def resample(method: MethodRuns, resamples: int = RESAMPLES, seed: int = 0) -> Resampled:
    """Compute a method's averages on resamples of the test items.

    The items drawn depend on ``seed`` and on the test texts alone, so methods are paired whatever
    the order in which they are resampled.

    Args:
        method: All its runs.
        resamples: How many.
        seed: Of the draws.

    Raises:
        DataError: Predictions are missing, or do not give the score that was reported, or the seeds
            were judged on different items.
    """
    families = method.families
    items = {task: runs[method.seeds[0]].items for task, runs in method.runs.items()}
    by_family: dict[str, list[Floats]] = {}
    for task in sorted(method.runs):
        runs = [method.runs[task][s] for s in method.seeds]
        by_family.setdefault(families[task], []).append(_resample_task(runs, resamples, seed))
    averages = {family: np.mean(tasks, axis=0) for family, tasks in by_family.items()}
    averages[AVERAGE] = np.mean([*averages.values()], axis=0)
    return Resampled(
        method.method,
        method.seeds,
        items,
        observed={name: scores[0] for name, scores in averages.items()},
        drawn={name: scores[1:] for name, scores in averages.items()},
    )


def paired_difference(
    a: Resampled, b: Resampled, family: str = AVERAGE, seed: int = 0
) -> Difference:
    """Return how much higher ``a`` scores than ``b``, with a 95 % interval and a p-value.

    Args:
        a: A resampled method.
        b: Another, on the same tasks, with the same resamples and seed.
        family: A family of the tasks, or :data:`AVERAGE`.
        seed: Of the draws of seeds.

    Raises:
        ValueError: The numbers of resamples differ.
        DataError: The methods were judged on different items or trained with different seeds, or
            all resamples are undefined.
    """
    if a.resamples != b.resamples:
        raise ValueError(f"expected equal resamples, got {a.resamples}, {b.resamples}")
    if a.items != b.items:
        tasks = sorted(t for t in {*a.items, *b.items} if a.items.get(t) != b.items.get(t))
        raise DataError(
            f"{a.method} and {b.method} were judged on different test items of {', '.join(tasks)}; "
            "evaluate both again"
        )
    if len(a.seeds) > 1 and len(b.seeds) > 1 and a.seeds != b.seeds:
        raise DataError(
            f"{a.method} has the seeds {a.seeds} and {b.method} {b.seeds}; run them all"
        )
    differences = _over_drawn_seeds(a.drawn[family], seed) - _over_drawn_seeds(
        b.drawn[family], seed
    )
    defined = differences[np.isfinite(differences)]
    if not len(defined):
        raise DataError(
            f"no resample of the test items gives {a.method} and {b.method} a score; "
            "the test splits are too small to compare methods"
        )
    low, high = np.quantile(defined, [ALPHA / 2, 1 - ALPHA / 2])
    return Difference(
        mean=float(a.observed[family].mean() - b.observed[family].mean()),
        low=float(low),
        high=float(high),
        p=sign_p_value(defined),
        undefined=len(differences) - len(defined),
    )


def sign_p_value(differences: Floats) -> float:
    r"""Return the two-sided p-value that the resamples of a difference give to no difference.

    .. math:: p = \min(1, 2 (1 + k) / (1 + W))

    k is the number of resamples at or beyond zero, on the side where there are fewer. The
    observation counts as one of them, so that p is never 0.

    Args:
        differences: One for each resample, ``(W,)``.

    Example:
        >>> sign_p_value(np.array([0.1, 0.2, 0.3, -0.1, 0.2, 0.1, 0.4]))
        0.5
    """
    beyond = min((differences <= 0).sum(), (differences >= 0).sum())
    return float(min(1.0, 2 * (1 + beyond) / (1 + len(differences))))


def draw_items(items: int, digest: str, resamples: int, seed: int) -> NDArray[np.int32]:
    """Return how often each item is drawn in each resample, ``(W, N)``.

    Args:
        items: Number of test items.
        digest: Hex digest of the test texts: equal digests draw equal items.
        resamples: How many.
        seed: Of the draws.

    Example:
        >>> draw_items(4, "ab", 2, seed=0).sum(axis=1).tolist()
        [4, 4]
    """
    generator = np.random.default_rng([seed, int(digest, 16)])
    counts = np.empty((resamples, items), dtype=np.int32)
    for row in counts:
        row[:] = np.bincount(generator.integers(0, items, size=items), minlength=items)
    return counts


def _resample_task(runs: Sequence[Run], resamples: int, seed: int) -> Floats:
    """Return the scores of a method's seeds on all items, then on each resample, ``(1 + W, S)``."""
    first = runs[0]
    for run in runs:
        require_same_items(run, first)
    predictions = [read_predictions(run) for run in runs]
    counts = draw_items(len(predictions[0][0]), first.items, resamples, seed)
    scores = [
        _resample_run(run, *read, counts) for run, read in zip(runs, predictions, strict=True)
    ]
    return np.stack(scores, axis=1)


def _resample_run(
    run: Run, gold: NDArray[Any], predicted: NDArray[Any], counts: NDArray[np.int32]
) -> Floats:
    """Return the main score on all items, then on each resample, ``(1 + W,)``."""
    _, metric = MAIN_METRICS[run.family]
    rows = max(1, BLOCK_CELLS // len(gold))
    blocks = [
        metric(gold, predicted, counts[start : start + rows])
        for start in range(0, len(counts), rows)
    ]
    return np.concatenate([[run.score], *blocks])


def _over_drawn_seeds(averages: Floats, seed: int) -> Floats:
    """Return the mean over as many drawn seeds as there are, ``(W,)``."""
    resamples, seeds = averages.shape
    drawn = np.random.default_rng([seed, 0]).integers(0, seeds, size=(resamples, seeds))
    return np.asarray(np.take_along_axis(averages, drawn, axis=1).mean(axis=1))
