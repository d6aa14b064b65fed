"""Ratios of two things timed in turns, so that what slows the machine slows both."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

Work = Callable[[int], object]
"""Does one repeat, whose number it is given: each repeat works on a batch of its own."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, least and greatest of what the pairs say."""

    ratio: float
    low: float
    high: float


def timed_in_turns(
    works: Sequence[Work],
    pairs: int,
    warm_up: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> list[list[float]]:
    """Time works in turns: the first, the second, ..., the first again.

    Args:
        works: Called with the number of the repeat, the same for all works of a round.
        pairs: Rounds that are timed.
        warm_up: Rounds before them that are not; their numbers are used up.
        clock: What is read before and after: the time of day, or ``time.process_time``.

    Returns:
        Seconds by work, one for each round.

    >>> timed_in_turns([lambda repeat: None, lambda repeat: None], pairs=3) != []
    True
    """
    for repeat in range(warm_up):
        for work in works:
            work(repeat)
    seconds: list[list[float]] = [[] for _ in works]
    for repeat in range(warm_up, warm_up + pairs):
        for work, taken in zip(works, seconds, strict=True):
            taken.append(_seconds(work, repeat, clock))
    return seconds


def spread(values: Sequence[float]) -> Spread:
    """Sum up the values of the pairs.

    >>> spread([1.0, 4.0, 2.0])
    Spread(ratio=2.0, low=1.0, high=4.0)
    """
    return Spread(statistics.median(values), min(values), max(values))


def ratios(seconds: Sequence[float], base: Sequence[float]) -> list[float]:
    """Divide pair by pair: what a slow minute does to both sides of a pair cancels out.

    >>> ratios([2.0, 30.0], [1.0, 10.0])
    [2.0, 3.0]
    """
    return [value / other for value, other in zip(seconds, base, strict=True)]


def _seconds(work: Work, repeat: int, clock: Callable[[], float]) -> float:
    synchronise()
    start = clock()
    work(repeat)
    synchronise()
    return clock() - start


def synchronise() -> None:
    """Wait for the GPU, where there is one: its work is only queued when a call returns."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
