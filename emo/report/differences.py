"""Differences between methods in Markdown: tables and sentences that say whether they hold."""

from collections.abc import Sequence

from emo.config import Comparison
from emo.report.bootstrap import ALPHA, AVERAGE, RESAMPLES, Difference
from emo.report.contrasts import Contrast
from emo.report.runs import UNDISTILLED
from emo.report.table import markdown_table

BOOTSTRAP = (
    f"Intervals hold 95 % of the differences in a paired bootstrap ({RESAMPLES} resamples of the "
    "test items and, where there are several, of the seeds); they are not corrected for the number "
    "of comparisons."
)


def how_to_read_differences(compare: Comparison) -> str:
    """Return the paragraph that comes before tables of differences."""
    return (
        f"Differences are in points of a hundred, the greatest first. {BOOTSTRAP} p is two-sided: "
        "twice the share of the resamples at or beyond zero, the observation counted as one of "
        f"them, so that it is never below {2 / (1 + RESAMPLES):.4f}. Holm's correction is over all "
        "methods against one baseline, for the average of families and for each family apart. The "
        f"verdict, and the star behind the difference on a family, ask for a corrected p below "
        f"{ALPHA}. The study asks about **{compare.method}**."
    )


def difference_tables(
    compare: Comparison, families: Sequence[str], contrasts: Sequence[Contrast]
) -> list[str]:
    """Return a heading and a table for each baseline.

    Args:
        compare: The two methods that the study asks about.
        families: Families of the tasks, in the order of the columns.
        contrasts: Of one teacher and one student, sorted.
    """
    parts = []
    for baseline in dict.fromkeys(contrast.baseline for contrast in contrasts):
        named = "the undistilled student" if baseline == UNDISTILLED else baseline
        mine = [contrast for contrast in contrasts if contrast.baseline == baseline]
        parts += [f"### Differences from {named}", _table(compare, families, mine)]
        parts += [note for note in (_undefined(mine),) if note]
    return parts


def difference_sentence(a: str, b: str, difference: Difference) -> str:
    """Say in a sentence how ``a`` differs from ``b``, in points of a hundred.

    >>> print(difference_sentence("emo", "pooled", Difference(0.004, -0.001, 0.009, 0.1, 0)))
    **emo - pooled**: +0.40 points, 95 % interval -0.10 to +0.90: no significant difference.
    """
    verdict = "no significant difference"
    if difference.significant:
        verdict = f"{a} is {'better' if difference.low > 0 else 'worse'}"
    undefined = ""
    if difference.undefined:
        undefined = f" {difference.undefined} resamples without a defined score were left out."
    return (
        f"**{a} - {b}**: {points(difference.mean)} points, 95 % interval "
        f"{interval(difference)}: {verdict}.{undefined}"
    )


def _table(compare: Comparison, families: Sequence[str], contrasts: Sequence[Contrast]) -> str:
    header = ["method", "verdict", "average of families", "95 % interval", "p", "p (Holm)"]
    by_place = {(contrast.method, contrast.family): contrast for contrast in contrasts}
    rows = []
    for contrast in contrasts:
        if contrast.family != AVERAGE:
            continue
        name, difference = contrast.method, contrast.difference
        rows.append(
            [
                f"**{name}**" if name == compare.method else name,
                contrast.verdict,
                points(difference.mean),
                interval(difference),
                f"{difference.p:.4f}",
                f"{contrast.p_holm:.4f}",
                *(_cell(by_place[name, family]) for family in families),
            ]
        )
    return markdown_table([*header, *families], rows, words=2)


def _cell(contrast: Contrast) -> str:
    star = "" if contrast.verdict == "no significant difference" else " \\*"
    return f"{points(contrast.difference.mean)} ({interval(contrast.difference)}){star}"


def _undefined(contrasts: Sequence[Contrast]) -> str:
    most = max(contrasts, key=lambda contrast: contrast.difference.undefined)
    if not most.difference.undefined:
        return ""
    return (
        f"Resamples without a defined score were left out, most of them, "
        f"{most.difference.undefined}, of {most.method} on {most.family}."
    )


def interval(difference: Difference) -> str:
    """Return the interval of a difference in points of a hundred."""
    return f"{points(difference.low)} to {points(difference.high)}"


def points(value: float) -> str:
    """Return a difference in points of a hundred.

    >>> points(0.0123)
    '+1.23'
    """
    return f"{100 * value:+.2f}"
