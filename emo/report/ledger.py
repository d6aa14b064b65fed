"""``costs.csv``, one job a line, and the section of the report that sums it up."""

import statistics
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from emo.jobs import Job
from emo.report.costs import Cost, ratio, seconds_of
from emo.report.csv_table import write_csv
from emo.report.stores import rows_table, stores_table
from emo.report.table import markdown_table

JOB_COLUMNS = (
    *("rule", "teacher", "student", "texts", "task", "request", "method", "seed", "rate", "part"),
)
WORK_COLUMNS = (
    "seconds",
    "peak_memory_mb",
    "texts_read",
    "tokens",
    "bytes",
    "bytes_per_text",
    "bytes_per_token",
    "texts_per_second",
    "device",
)
TEACHER_RULES = ("tune", "doctor", "doctor_tuned", "teach_basis", "teach_shard", "teach")
"""Run once for a teacher, whatever its students."""
SIGNAL_RULES = ("align", "teach_rows_shard", "teach_rows")
"""Run for a teacher and a student, whatever the method and the seed."""
SEARCH_RULES = ("trial", "evaluate_trial", "choose")
"""Run for each method, before the trainings that count."""


def costs_table(costs: Sequence[Cost]) -> pd.DataFrame:
    """Return what every job cost; cells that do not apply are empty."""
    rows = [
        (
            *(getattr(cost.job, name) for name in JOB_COLUMNS),
            cost.seconds,
            cost.peak_memory,
            cost.work.texts,
            cost.work.tokens,
            cost.work.bytes,
            cost.bytes_per_text,
            cost.bytes_per_token,
            cost.texts_per_second,
            cost.work.device,
        )
        for cost in costs
    ]
    whole = dict.fromkeys(("seed", "texts_read", "tokens", "bytes"), "Int64")
    return pd.DataFrame(rows, columns=[*JOB_COLUMNS, *WORK_COLUMNS]).astype(whole)


def write_costs(costs: Sequence[Cost], out: Path) -> None:
    """Write the table."""
    write_csv(costs_table(costs), out)


def cost_section(costs: Sequence[Cost]) -> str:
    """Return what a study cost, in Markdown: in sum, by rule, and what its stores hold."""
    note = (
        "Seconds are the wall-clock time of each job, the start of the program included, added up "
        "over jobs that may have run side by side. Of an interrupted training only what followed "
        "the last interruption is counted. Peak memory is main memory, of the largest job. "
        "`costs.csv` has every job."
    )
    parts = ["## What it cost", note]
    if unknown := [cost.job.benchmark for cost in costs if cost.seconds is None]:
        gone = f"`{unknown[0]}`{' and others are' if unknown[1:] else ' is'} gone"
        parts.append(
            f"**Of {len(unknown)} of {len(costs)} jobs seconds and memory are not known**, and "
            f"sums leave them out: {gone}. Snakemake writes such a file when the job runs again."
        )
    parts += ["\n".join(_sums(costs)), _by_rule(costs)]
    parts.append(stores_table(_jobs(costs, "teach")))
    if rows := _jobs(costs, "teach_rows"):
        parts.append(rows_table(rows))
    return "\n\n".join(parts)


def _sums(costs: Sequence[Cost]) -> list[str]:
    """Say what was paid once, what for each student and what for each training."""
    lines = []
    for teacher in dict.fromkeys(cost.job.teacher for cost in _of(costs, TEACHER_RULES)):
        once = [cost for cost in _of(costs, TEACHER_RULES) if cost.job.teacher == teacher]
        lines.append(f"- **{teacher}**: {_paid(once)} once, for all students, methods and seeds.")
    for pair in dict.fromkeys(_pair(cost.job) for cost in _of(costs, ("distil",))):
        mine = [cost for cost in costs if _pair(cost.job) == pair]
        trainings = seconds_of(_of(mine, ("distil",)))
        each = f"{statistics.fmean(trainings):,.0f} s" if trainings else "unknown time"
        lines.append(
            f"- **{pair[0]} to {pair[1]}**: {_paid(_of(mine, SIGNAL_RULES))} for maps and "
            f"attention rows; {len(_of(mine, ('distil',)))} trainings of {each}."
        )
        if searched := _of(mine, SEARCH_RULES):
            trials = len(_of(searched, ("trial",)))
            lines[-1] += f" The search before them: {trials} trials, {_paid(searched)}."
    return lines


def _by_rule(costs: Sequence[Cost]) -> str:
    header = [
        "rule",
        "of",
        "jobs",
        "seconds",
        "a job",
        "texts/s",
        "peak memory (MB)",
        "stored (MB)",
    ]
    groups: dict[tuple[str, str], list[Cost]] = {}
    for cost in costs:
        job = cost.job
        groups.setdefault((job.rule, job.method or job.teacher or job.student), []).append(cost)
    rows = []
    for (rule, name), group in groups.items():
        known = [cost for cost in group if cost.seconds is not None]
        seconds = sum(seconds_of(known))
        texts = [cost.work.texts for cost in known if cost.work.texts is not None]
        memory = [cost.peak_memory for cost in group if cost.peak_memory is not None]
        rows.append(
            [
                rule,
                name or "-",
                str(len(group)),
                f"{seconds:,.1f}" if known else "-",
                f"{seconds / len(known):,.1f}" if known else "-",
                f"{ratio(sum(texts), seconds):,.1f}" if texts else "-",
                f"{max(memory):,.0f}" if memory else "-",
                f"{_bytes(group) / 1e6:,.1f}" if _bytes(group) else "-",
            ]
        )
    return markdown_table(header, rows, words=2)


def _paid(costs: Sequence[Cost]) -> str:
    seconds = sum(seconds_of(costs))
    return f"{seconds:,.0f} s and {_bytes(costs) / 1e6:,.1f} MB"


def _bytes(costs: Sequence[Cost]) -> int:
    return sum(cost.work.bytes or 0 for cost in costs)


def _of(costs: Sequence[Cost], rules: Sequence[str]) -> list[Cost]:
    return [cost for cost in costs if cost.job.rule in rules]


def _jobs(costs: Sequence[Cost], rule: str) -> list[Job]:
    return [cost.job for cost in _of(costs, (rule,))]


def _pair(job: Job) -> tuple[str, str]:
    return job.teacher, job.student
