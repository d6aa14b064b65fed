"""What the sums that shards carry say of a whole store.

Sums are taken in float64 over everything that a shard holds and add up over shards, so that means
and reconstruction errors are those of all texts, not of a sample.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emo.store.reconstruction import COUNT, reconstruction

Totals = Mapping[str, Any]

TOKENS = "tokens"
"""Name of the count of the teacher's tokens, the prompt's left out."""


def summed(totals: Sequence[Totals]) -> dict[str, Any]:
    """Add numbers and lists of numbers by name.

    >>> summed([{"texts": 2, "sum": [1.0, 2.0]}, {"texts": 3, "sum": [0.5, 0.0]}])
    {'texts': 5, 'sum': [1.5, 2.0]}
    """
    return {
        name: np.sum([np.asarray(part[name]) for part in totals], axis=0).tolist()
        for name in totals[0]
    }


def constants(totals: Totals) -> dict[str, list[float]]:
    """Return the centres: means over the texts and over their text tokens."""
    means = {"vector_centre": ("vector_sum", "texts"), "state_centre": ("state_sum", "text_tokens")}
    return {
        name: _list32(np.asarray(totals[sums]) / max(totals[count], 1))
        for name, (sums, count) in means.items()
        if sums in totals
    }


def measures(totals: Totals) -> dict[str, float]:
    """Return the counts that were summed, and what is lost by the way things are stored."""
    found: dict[str, float] = {
        name: totals[name] for name in (TOKENS, "text_tokens", COUNT, "rows") if name in totals
    }
    if COUNT in totals:
        found |= reconstruction(totals)
    if totals.get("importance"):
        found["importance_kept"] = totals["importance_kept"] / totals["importance"]
    return found


def _list32(values: NDArray[np.float64]) -> list[float]:
    """Round to float32, which JSON gives back exactly."""
    rounded: list[float] = values.astype(np.float32).astype(np.float64).tolist()
    return rounded
