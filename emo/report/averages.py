"""Scores of one method put together: over seeds, tasks and families."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emo.averages import over_families
from emo.config_methods import Family
from emo.errors import DataError
from emo.report.runs import Run


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean over seeds.

    Attributes:
        mean: The mean.
        deviation: Standard deviation over seeds (n - 1); None for one seed.
    """

    mean: float
    deviation: float | None


def over_seeds(scores: Sequence[float]) -> Spread:
    """Return mean and deviation.

    >>> over_seeds([0.25, 0.75])
    Spread(mean=0.5, deviation=0.3535533905932738)
    >>> over_seeds([0.25])
    Spread(mean=0.25, deviation=None)
    """
    deviation = statistics.stdev(scores) if len(scores) > 1 else None
    return Spread(statistics.fmean(scores), deviation)


@dataclass(frozen=True, slots=True)
class MethodRuns:
    """All runs of one method for one teacher and student: every task with every seed.

    Attributes:
        method: Its name.
        seeds: Its seeds, ascending.
        runs: By task and seed.
    """

    method: str
    seeds: tuple[int, ...]
    runs: Mapping[str, Mapping[int, Run]]

    @property
    def families(self) -> dict[str, Family]:
        """Family of each task."""
        return {task: by_seed[self.seeds[0]].family for task, by_seed in self.runs.items()}

    @property
    def parameters(self) -> int:
        """Number of weights of the model."""
        return next(iter(self.runs.values()))[self.seeds[0]].parameters

    def task(self, task: str) -> Spread:
        """Return the main score on a task."""
        return over_seeds([self.runs[task][seed].score for seed in self.seeds])

    def family(self, family: Family) -> Spread:
        """Return the average over the tasks of a family, taken as :meth:`average` is."""
        tasks = [task for task, found in self.families.items() if found == family]
        return over_seeds(
            [statistics.fmean(self.runs[task][seed].score for task in tasks) for seed in self.seeds]
        )

    def average(self) -> Spread:
        """Return the average over families: taken for each seed, then over the seeds."""
        return over_seeds(
            [
                over_families(
                    {task: self.runs[task][seed].score for task in self.runs}, self.families
                )
                for seed in self.seeds
            ]
        )


def method_runs(
    runs: Sequence[Run], pair: tuple[str, str], method: str, tasks: Sequence[str]
) -> MethodRuns:
    """Collect the runs of a method for a (teacher, student) pair.

    Raises:
        DataError: A task or a seed is missing: an average over the rest would mislead.
    """
    mine = [run for run in runs if (run.teacher, run.student) == pair and run.method == method]
    seeds = tuple(sorted({run.seed for run in mine}))
    by_task = {task: {run.seed: run for run in mine if run.task == task} for task in tasks}
    where = "/".join(pair)
    if not seeds:
        raise DataError(f"{where}: there is no run of {method}; add it to the manifest")
    for task, by_seed in by_task.items():
        for seed in seeds:
            if seed not in by_seed:
                raise DataError(f"{where}: {method} lacks seed {seed} on {task}; evaluate it first")
    return MethodRuns(method, seeds, by_task)
