"""Tables and a figure from the files of finished runs; nothing is computed by a model here."""

from emo.report.bootstrap import Difference, paired_difference, resample
from emo.report.document import write_report
from emo.report.figure import write_figure
from emo.report.runs import Run, load_runs
from emo.report.speeds import Speed, load_speeds
from emo.report.summary import write_summary

__all__ = [
    "Difference",
    "Run",
    "Speed",
    "load_runs",
    "load_speeds",
    "paired_difference",
    "resample",
    "write_figure",
    "write_report",
    "write_summary",
]
