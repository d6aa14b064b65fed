"""Holm's correction of p-values for the number of comparisons made together."""

from collections.abc import Sequence
from itertools import accumulate


def holm(p_values: Sequence[float]) -> list[float]:
    r"""Return the p-values corrected for their number, in their order.

    .. math:: \tilde{p}_{(i)} = \max_{j \le i} \min(1, (m - j + 1) p_{(j)})

    over the m p-values from the smallest up. Refusing each null hypothesis whose corrected p-value
    is below a level refuses any true one with at most that probability, however the comparisons
    depend on each other.

    Args:
        p_values: Of the comparisons of one family.

    References:
        Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979.

    Example:
        >>> holm([0.04, 0.01, 0.03])
        [0.06, 0.03, 0.06]
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    stepped = (
        min(1.0, (len(order) - place) * p_values[index]) for place, index in enumerate(order)
    )
    corrected = dict(zip(order, accumulate(stepped, max), strict=True))
    return [corrected[index] for index in range(len(p_values))]
