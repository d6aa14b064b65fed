"""Differences between methods, in sentences that say whether they hold."""

from collections.abc import Mapping

from emo.config import Comparison
from emo.report.bootstrap import RESAMPLES, Difference, Resampled, paired_difference, resample
from emo.report.results import PairResults
from emo.report.runs import UNDISTILLED

INTERVALS = (
    "Differences of the averages over families. Intervals are from a paired bootstrap "
    f"({RESAMPLES} resamples of the test items and, where there are several, of the seeds); "
    "they are not corrected for the number of comparisons."
)


def resampled_methods(results: PairResults) -> dict[str, Resampled]:
    """Resample the undistilled student and each method of one teacher and one student.

    Raises:
        DataError: Predictions are missing, or do not give the score that was reported.
    """
    return {name: resample(results.methods[name]) for name in (UNDISTILLED, *results.distilled)}


def method_differences(compare: Comparison, resampled: Mapping[str, Resampled]) -> list[str]:
    """Say how the compared methods differ, and each method from the undistilled student.

    Args:
        compare: The two methods that the study asks about.
        resampled: Of one teacher and one student, see :func:`resampled_methods`.

    Returns:
        Paragraphs: how to read them, and a Markdown list.

    Raises:
        DataError: Methods were judged on different items or trained with different seeds.
    """
    asked = [(compare.method, compare.baseline)]
    asked += [(method, UNDISTILLED) for method in resampled if method != UNDISTILLED]
    lines = [
        f"- {difference_sentence(a, b, paired_difference(resampled[a], resampled[b]))}"
        for a, b in asked
    ]
    return [INTERVALS, "\n".join(lines)]


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
