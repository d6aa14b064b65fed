"""Report a study and add to each tracked training what it cost."""

from collections.abc import Sequence
from pathlib import Path

from emo.config import Study
from emo.jobs import row_map_job, signal_jobs
from emo.outputs import read_json
from emo.report.costs import Cost, ratio, seconds_of
from emo.report.study import report_study
from emo.runs import training_runs
from emo.tracking import RunGroup, tracking_after

STORE_RULES = ("tune", "teach_basis", "teach_shard", "teach")
"""What makes the teacher's signals for a text set; a tuned teacher is tuned for it."""


def report_and_track(study: Study, out: Path) -> None:
    """Write the tables and the figure of a study, then show costs in the runs they belong to.

    The report is whole without MLflow: a store that cannot be used is warned of.

    Args:
        study: The study, all of whose runs are finished.
        out: Folder of the tables and the figure.

    Raises:
        DataError: A file of the study is missing or damaged.
    """
    costs = report_study(study, out)
    with tracking_after("the report is written, but MLflow does not have its costs"):
        _track(study, costs)


def _track(study: Study, costs: Sequence[Cost]) -> None:
    for training in costs:
        job = training.job
        if job.rule == "distil" and job.seed is not None:
            keys = training_runs(study, job.teacher, job.student, job.texts, job.method, job.seed)
            identity = read_json(Path(job.result))["identity"]
            with RunGroup(keys, identity, {}, {}) as group:
                group.log_costs(training_costs(study, training, costs))


def training_costs(study: Study, training: Cost, costs: Sequence[Cost]) -> dict[str, float]:
    """Return what a training cost, with what it shares with other trainings, by name.

    ``teacher_seconds`` is paid once for a text set, ``signal_seconds`` once for a student: the maps
    and the attention rows that the method asks for.
    """
    job = training.job
    signals = signal_jobs(study, job.teacher, job.student, job.texts, job.method)
    asked = {signal.request for signal in signals.values() if signal.request}
    if "rows" in signals:
        asked.add(row_map_job(signals["rows"]).request)
    near = [
        cost for cost in costs if (cost.job.teacher, cost.job.texts) == (job.teacher, job.texts)
    ]
    store = [cost for cost in near if cost.job.rule in STORE_RULES]
    mine = [cost for cost in near if cost.job.student == job.student and cost.job.request in asked]
    size = sum(cost.work.bytes or 0 for cost in store)
    found = {
        "teacher_seconds": _sum(store),
        "signal_seconds": _sum(mine),
        "student_seconds": training.seconds,
        "student_memory_mb": training.peak_memory,
        "texts_per_second": training.texts_per_second,
        "store_bytes_per_text": ratio(size, sum(cost.work.texts or 0 for cost in store)),
        "store_bytes_per_token": ratio(size, sum(cost.work.tokens or 0 for cost in store)),
    }
    return {name: value for name, value in found.items() if value is not None}


def _sum(costs: Sequence[Cost]) -> float | None:
    """Return the seconds of jobs together, None where those of one are not known."""
    known = seconds_of(costs)
    return sum(known) if len(known) == len(costs) else None
