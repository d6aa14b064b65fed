"""Refuse vectors that make a score undefined or meaningless, by the name of model and metric.

A collapsed student gives NaN from some metrics and an innocent number from others; either would
vanish in an average.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from emo.errors import DataError

EQUAL_VECTORS = 1e-6
"""Encoding one text in two batches moves a float32 vector by about this much of its size."""
EQUAL_COSINES = float(np.finfo(np.float32).eps)


def check_vectors(x: NDArray[Any], model: str, metric: str) -> None:
    """Raise unless each vector is finite and not zero, ``x`` being ``(N, D)``."""
    broken = np.flatnonzero(~np.isfinite(x).all(axis=1))
    if len(broken):
        raise DataError(
            f"{metric} of {model} is undefined: {len(broken)} of {len(x)} vectors are not finite "
            f"(the first is number {broken[0]}); look at the model's training losses"
        )
    zero = np.flatnonzero(~x.any(axis=1))
    if len(zero):
        raise DataError(
            f"{metric} of {model} is undefined: {len(zero)} of {len(x)} vectors are zero "
            f"(the first is number {zero[0]}); look for texts without tokens"
        )


def check_not_equal(x: NDArray[Any], model: str, metric: str) -> None:
    """Raise when the vectors, ``(N, D)``, are equal but for rounding."""
    if np.abs(x - x[0]).max() <= EQUAL_VECTORS * np.abs(x).max():
        raise DataError(
            f"{metric} of {model} is meaningless: all {len(x)} vectors are equal, the model has "
            "collapsed; look at its mean off-diagonal cosine during training"
        )


def check_cosines(cosine: NDArray[Any], model: str, metric: str) -> None:
    """Raise unless the cosines, ``(N,)``, are finite and differ."""
    if not np.isfinite(cosine).all():
        raise DataError(f"{metric} of {model} is undefined: some cosines are not finite")
    if np.ptp(cosine) <= EQUAL_COSINES:
        raise DataError(
            f"{metric} of {model} is undefined: all {len(cosine)} cosines are equal "
            f"({cosine[0]:.6f}), the model has collapsed or there is one pair only"
        )


def check_gold(gold: NDArray[Any], split: str, model: str, metric: str) -> None:
    """Raise when the items of a split all have the same gold value, ``(N,)``."""
    if len(np.unique(gold)) < 2:
        raise DataError(
            f"{metric} of {model} is undefined: all {len(gold)} {split} items have the gold "
            f"value {gold[0]}; choose another {split} split"
        )
