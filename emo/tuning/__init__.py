"""Tune a teacher on a task before it teaches, as in the paper's supervised setting."""

from emo.tuning.stage import TuningInputs, tune

__all__ = ["TuningInputs", "tune"]
