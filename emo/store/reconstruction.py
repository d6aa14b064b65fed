"""How much of the token states is lost by the way they are stored.

Shapes: ``n`` tokens, ``D`` width of a state.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

COUNT = "stored_tokens"


class Reconstruction:
    """Sums over stored tokens, in float64, which add up over shards.

    Args:
        width: D.
    """

    def __init__(self, width: int) -> None:
        self._tokens = 0
        self._cosines = 0.0
        self._errors = 0.0
        self._squares = 0.0
        self._states = np.zeros(width)

    def add(self, states: NDArray[np.float32], restored: NDArray[np.float32]) -> None:
        """Count tokens, ``(n, D)`` as the teacher gave them and as the store gives them back."""
        given, back = states.astype(np.float64), restored.astype(np.float64)
        squares = (given**2).sum(axis=1)
        norms = np.sqrt(squares * (back**2).sum(axis=1))
        products = (given * back).sum(axis=1)
        self._tokens += len(given)
        self._cosines += float((products / np.where(norms > 0, norms, 1.0)).sum())
        self._errors += float(((given - back) ** 2).sum())
        self._squares += float(squares.sum())
        self._states += given.sum(axis=0)

    def totals(self) -> dict[str, Any]:
        """Return the sums."""
        return {
            COUNT: self._tokens,
            "cosine_sum": self._cosines,
            "squared_error": self._errors,
            "squared_sum": self._squares,
            "stored_sum": self._states.tolist(),
        }


def reconstruction(totals: Mapping[str, Any]) -> dict[str, float]:
    """Return what was lost.

    Formula:
        state_cosine = mean cos(x, x̂),  state_relative_error = √(Σ ‖x - x̂‖² / Σ ‖x‖²),
        state_unexplained = Σ ‖x - x̂‖² / Σ ‖x - mean x‖²

    Teacher states share a large mean, which any reconstruction keeps: the last number is the one
    that does not count it.
    """
    count = totals[COUNT]
    if not count:
        return {}
    centre_square = float((np.asarray(totals["stored_sum"]) ** 2).sum()) / count
    error, square = totals["squared_error"], totals["squared_sum"]
    return {
        "state_cosine": totals["cosine_sum"] / count,
        "state_relative_error": float(np.sqrt(error / square)) if square else 0.0,
        "state_unexplained": error / (square - centre_square) if square > centre_square else 0.0,
    }
