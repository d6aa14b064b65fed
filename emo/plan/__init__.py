"""Foretell what a teacher's signals of a text set, and a training on them, will cost.

A probe runs the real stages on a sample of the texts: times grow with what the passes read, sizes
with what the shard of the probe says that a text, a token and a selected row take.
"""

from emo.plan.forecast import Forecast, Stage
from emo.plan.probe import PlannedTraining, Starts, plan

__all__ = ["Forecast", "PlannedTraining", "Stage", "Starts", "plan"]
