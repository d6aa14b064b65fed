"""The main metric of each family, on many resamples of the test items at once.

A resample is a row of counts: how often each item was drawn. A metric is computed for all rows
together, so a thousand resamples cost a few array operations instead of a thousand sorts; a row
of ones is the plain metric. Shapes: W resamples, N items, C classes, G groups of tied values.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emo.config_methods import Family

Floats = NDArray[np.float64]
WeightedMetric = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], Floats]


def macro_f1(gold: NDArray[Any], predicted: NDArray[Any], weights: NDArray[Any]) -> Floats:
    r"""Return the mean of the F1 of the classes, for each resample.

    .. math:: F_1(c) = 2 TP_c / (gold_c + predicted_c)

    The mean is over the classes that a resample holds, as gold or as predicted label.

    Args:
        gold: Labels, ``(N,)``.
        predicted: Labels, ``(N,)``.
        weights: Count of each item, ``(W, N)``.

    Returns:
        ``(W,)``.

    Raises:
        ValueError: The lengths differ.

    Example:
        >>> gold, predicted = np.array(["a", "a", "b"]), np.array(["a", "b", "b"])
        >>> macro_f1(gold, predicted, np.ones((1, 3))).round(3).tolist()
        [0.667]
    """
    _check(gold, predicted, weights)
    classes, codes = np.unique(np.concatenate([gold, predicted]), return_inverse=True)
    is_gold, is_predicted = np.eye(len(classes))[codes].reshape(2, len(gold), -1)  # (N, C)
    counts = weights.astype(np.float64)
    hits = counts @ (is_gold * is_predicted)
    named = counts @ is_gold + counts @ is_predicted
    present = named > 0
    f1 = np.divide(2 * hits, named, out=np.zeros_like(hits), where=present)
    return np.asarray(f1.sum(axis=1) / present.sum(axis=1))


def average_precision(gold: NDArray[Any], score: NDArray[Any], weights: NDArray[Any]) -> Floats:
    r"""Return the average precision of a ranking, for each resample.

    .. math:: AP = \sum_g (R_g - R_{g-1}) P_g

    over the groups g of equal scores from the highest down, R recall and P precision once the
    whole group is taken.

    Args:
        gold: 1 where the pair is positive, else 0, ``(N,)``.
        score: The higher, the more positive, ``(N,)``.
        weights: Count of each item, ``(W, N)``.

    Returns:
        ``(W,)``; NaN for a resample without a positive.

    Raises:
        ValueError: The lengths differ.

    Example:
        >>> gold, cosine = np.array([1, 0, 1]), np.array([0.9, 0.8, 0.7])
        >>> average_precision(gold, cosine, np.ones((1, 3))).round(3).tolist()
        [0.833]
    """
    _check(gold, score, weights)
    order, starts = _tied_groups(-np.asarray(score, dtype=np.float64))
    counts = weights[:, order].astype(np.float64)
    positives = np.add.reduceat(counts * gold[order], starts, axis=1)  # (W, G)
    taken = np.cumsum(np.add.reduceat(counts, starts, axis=1), axis=1)
    found = np.cumsum(positives, axis=1)
    precision = np.divide(found, taken, out=np.zeros_like(found), where=taken > 0)
    total = found[:, -1]
    weighted = (positives * precision).sum(axis=1)
    undefined = np.full_like(total, np.nan)
    return np.asarray(np.divide(weighted, total, out=undefined, where=total > 0))


def spearman(gold: NDArray[Any], score: NDArray[Any], weights: NDArray[Any]) -> Floats:
    r"""Return Spearman's rank correlation, for each resample.

    The correlation of the two mean ranks, which are taken anew in every resample: an item that
    was drawn twice is a tie of two.

    Args:
        gold: ``(N,)``.
        score: ``(N,)``.
        weights: Count of each item, ``(W, N)``.

    Returns:
        ``(W,)``; NaN for a resample in which either side is constant.

    Raises:
        ValueError: The lengths differ.

    Example:
        >>> gold, cosine = np.array([0.0, 1.0, 2.0]), np.array([0.1, 0.9, 0.5])
        >>> spearman(gold, cosine, np.ones((1, 3))).tolist()
        [0.5]
    """
    _check(gold, score, weights)
    counts = weights.astype(np.float64)
    # Mean ranks average (n + 1) / 2 whatever the ties, so a constant side is exactly zero here.
    centre = (counts.sum(axis=1, keepdims=True) + 1) / 2
    left = _mean_ranks(gold, counts) - centre
    right = _mean_ranks(score, counts) - centre
    spread = (counts * left**2).sum(axis=1) * (counts * right**2).sum(axis=1)
    shared = (counts * left * right).sum(axis=1)
    undefined = np.full_like(spread, np.nan)
    return np.asarray(np.divide(shared, np.sqrt(spread), out=undefined, where=spread > 0))


MAIN_METRICS: Mapping[Family, tuple[str, WeightedMetric]] = {
    "classification": ("macro_f1", macro_f1),
    "pairs": ("average_precision", average_precision),
    "sts": ("spearman", spearman),
}


def main_metric(family: Family, gold: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return a family's main metric on all items once; NaN where it is undefined."""
    _, metric = MAIN_METRICS[family]
    return float(metric(gold, predicted, np.ones((1, len(gold))))[0])


def _mean_ranks(values: NDArray[Any], counts: Floats) -> Floats:
    """Return the mean rank, from 1, of each item in each resample, ``(W, N)``."""
    order, starts = _tied_groups(np.asarray(values, dtype=np.float64))
    sizes = np.add.reduceat(counts[:, order], starts, axis=1)  # (W, G)
    ranks = np.cumsum(sizes, axis=1) - (sizes - 1) / 2
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    return np.asarray(ranks[:, group])


def _tied_groups(values: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ascending order, and where in it each group of equal values starts."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    return order, np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))


def _check(gold: NDArray[Any], predicted: NDArray[Any], weights: NDArray[Any]) -> None:
    items = len(gold)
    if not items or predicted.shape != (items,) or weights.ndim != 2 or weights.shape[1] != items:
        raise ValueError(
            f"expected gold (N,), predicted (N,), weights (W, N) with N > 0; got {gold.shape}, "
            f"{predicted.shape}, {weights.shape}"
        )
