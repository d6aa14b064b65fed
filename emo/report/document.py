"""``report.md``: scores, differences that hold or do not, and what was left out on the way."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from emo.config import Study
from emo.errors import DataError
from emo.outputs import atomic_file, read_json
from emo.report.bootstrap import Resampled
from emo.report.compression import compression_differences
from emo.report.contrasts import Contrast, Pair
from emo.report.costs import Cost
from emo.report.differences import BOOTSTRAP, difference_tables, how_to_read_differences
from emo.report.ledger import cost_section
from emo.report.reading import over_seeds_words, who_answers, who_collapsed
from emo.report.results import PairResults
from emo.report.table import markdown_table, score_table


def write_report(
    study: Study,
    results: Sequence[PairResults],
    resampled: Mapping[Pair, Mapping[str, Resampled]],
    contrasts: Sequence[Contrast],
    task_reports: Mapping[str, Path],
    costs: Sequence[Cost],
    out: Path,
) -> None:
    """Write the report of a study.

    Args:
        study: The study.
        results: Its results by teacher and student; see :func:`emo.report.results.collect`.
        resampled: Its methods, resampled; see :func:`emo.report.contrasts.resampled_methods`.
        contrasts: Their differences; see :func:`emo.report.contrasts.study_contrasts`.
        task_reports: ``report.json`` of each task; tasks left out have no line in the counts.
        costs: What its jobs cost; none leaves that section out.
        out: The Markdown file to write.

    Raises:
        DataError: A task report is missing or damaged.
    """
    compare = study.study.compare
    parts = [
        "# Results",
        _how_to_read(study),
        *who_answers(study),
        *who_collapsed(study),
        how_to_read_differences(compare),
    ]
    for pair in results:
        mine = [each for each in contrasts if (each.teacher, each.student) == pair.names]
        parts += [
            f"## {pair.teacher} to {pair.student}",
            score_table(pair, study.training),
            _speed_note(pair),
            *difference_tables(compare, pair.families, mine),
        ]
    if lost := compression_differences(study, resampled):
        parts += ["## What smaller stores cost in score", BOOTSTRAP, "\n".join(lost)]
    if costs:
        parts.append(cost_section(costs))
    if task_reports:
        parts += ["## Test items and what was left out", _counts(task_reports)]
    with atomic_file(out) as temporary:
        temporary.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _how_to_read(study: Study) -> str:
    return (
        "Scores are the main metric of each task times 100. Averages are taken over families: the "
        "mean over the tasks of a family first, then over the families. "
        f"{over_seeds_words(study)} Every method was trained for {study.training.steps} steps of "
        f"{study.training.batch_size} texts."
    )


def _speed_note(results: PairResults) -> str:
    teacher, student = results.teacher_speed.conditions, results.student_speed.conditions
    measured = (
        "The student was measured undistilled: a head that a method adds counts in the parameters "
        "and not in the speed."
    )
    if teacher == student:
        return f"Speed on this machine: {teacher}. {measured}"
    return (
        f"The speeds do not compare, so no speed-up is given: the teacher's was measured with "
        f"{teacher}, the student's with {student}. {measured}"
    )


def _counts(task_reports: Mapping[str, Path]) -> str:
    header = [
        "task",
        "train",
        "validation",
        "test",
        "train rows beyond the share taken",
        "train rows with test texts",
        "validation rows with test texts",
        "training sentences that are test texts",
        "repeated rows",
        "rows with two labels",
        "rows without text",
    ]
    rows = [_count_row(task, path) for task, path in task_reports.items()]
    note = "The first three columns are what was used, the others what was dropped before."
    return f"{markdown_table(header, rows)}\n\n{note}"


def _count_row(task: str, path: Path) -> list[str]:
    report: dict[str, Any] = read_json(path)
    try:
        counts = [
            *(report["sizes"][split] for split in ("train", "validation", "test")),
            report["not_taken"],
            report["leaked"]["train"],
            report["leaked"]["validation"],
            report["leaked_sentences"],
            report["duplicates"],
            report["two_labels"],
            sum(len(rows) for rows in report["unusable"].values()),
        ]
    except (KeyError, TypeError) as error:
        raise DataError(f"{path} is no task report ({error!r}); prepare {task} again") from error
    return [task, *map(str, counts)]
