"""How scores of several tasks become one number."""

import statistics
from collections.abc import Mapping

from emo.config_methods import Family


def over_families(scores: Mapping[str, float], families: Mapping[str, Family]) -> float:
    """Return the mean over families of the means over their tasks.

    A family counts once, however many tasks it has.

    >>> scores = {"trec": 0.9, "stsb": 0.6, "sick": 0.8}
    >>> families = {"trec": "classification", "stsb": "sts", "sick": "sts"}
    >>> round(over_families(scores, families), 6)
    0.8
    """
    grouped: dict[Family, list[float]] = {}
    for task in sorted(scores):
        grouped.setdefault(families[task], []).append(scores[task])
    return statistics.fmean(statistics.fmean(grouped[family]) for family in sorted(grouped))
