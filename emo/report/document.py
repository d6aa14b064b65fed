"""``report.md``: scores, differences that hold or do not, and what was left out on the way."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from emo.config import Study
from emo.errors import DataError
from emo.outputs import atomic_file, read_json
from emo.report.bootstrap import RESAMPLES, Difference, paired_difference, resample
from emo.report.results import PairResults, collect
from emo.report.runs import UNDISTILLED, Run
from emo.report.speeds import Speed
from emo.report.table import markdown_table, score_table


def write_report(
    study: Study,
    runs: Sequence[Run],
    speeds: Mapping[str, Speed],
    task_reports: Mapping[str, Path],
    out: Path,
) -> None:
    """Write the report of a study.

    Args:
        study: The study.
        runs: All its runs; see :func:`emo.report.load_runs`.
        speeds: Measured speeds of its teachers and students.
        task_reports: ``report.json`` of each task; tasks left out have no line in the counts.
        out: The Markdown file to write.

    Raises:
        DataError: A run, a speed or a prediction is missing or damaged.
    """
    parts = ["# Results", _how_to_read(study)]
    for results in collect(study.study, runs, speeds):
        parts += [
            f"## {results.teacher} to {results.student}",
            score_table(results, study.training),
            _speed_note(results),
            "### Differences",
            *_differences(study, results),
        ]
    if task_reports:
        parts += ["## Test items and what was left out", _counts(task_reports)]
    with atomic_file(out) as temporary:
        temporary.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def difference_sentence(a: str, b: str, difference: Difference) -> str:
    """Say in a sentence how ``a`` differs from ``b``, in points of a hundred.

    >>> print(difference_sentence("emo", "pooled", Difference(0.004, -0.001, 0.009, 0)))
    **emo - pooled**: +0.40 points, 95 % interval -0.10 to +0.90: no significant difference.
    """
    mean, low, high = (100 * v for v in (difference.mean, difference.low, difference.high))
    verdict = "no significant difference"
    if difference.significant:
        verdict = f"{a} is {'better' if difference.low > 0 else 'worse'}"
    undefined = ""
    if difference.undefined:
        undefined = f" {difference.undefined} resamples without a defined score were left out."
    return (
        f"**{a} - {b}**: {mean:+.2f} points, 95 % interval {low:+.2f} to {high:+.2f}: "
        f"{verdict}.{undefined}"
    )


def _how_to_read(study: Study) -> str:
    seeds = sorted(study.study.seeds)
    spread = (
        f"Methods were trained with one seed ({seeds[0]}): how much scores vary over seeds is "
        "unknown, and the intervals say nothing about other seeds."
        if len(seeds) == 1
        else "Scores of methods are mean ± standard deviation over the seeds "
        f"{', '.join(map(str, seeds))}."
    )
    return (
        "Scores are the main metric of each task times 100. Averages are taken over families: the "
        f"mean over the tasks of a family first, then over the families. {spread} Every method was "
        f"trained for {study.training.steps} steps of {study.training.batch_size} texts."
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


def _differences(study: Study, results: PairResults) -> list[str]:
    compare = study.study.compare
    resampled = {
        name: resample(results.methods[name]) for name in (UNDISTILLED, *results.distilled)
    }
    asked = [(compare.method, compare.baseline)]
    asked += [(method, UNDISTILLED) for method in results.distilled]
    lines = [
        f"- {difference_sentence(a, b, paired_difference(resampled[a], resampled[b]))}"
        for a, b in asked
    ]
    how = (
        "Differences of the averages over families. Intervals are from a paired bootstrap "
        f"({RESAMPLES} resamples of the test items and, where there are several, of the seeds); "
        "they are not corrected for the number of comparisons."
    )
    return [how, "\n".join(lines)]


def _counts(task_reports: Mapping[str, Path]) -> str:
    header = [
        "task",
        "train",
        "validation",
        "test",
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
