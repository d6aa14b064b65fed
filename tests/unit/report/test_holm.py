"""Holm's correction, against its textbook form: step down and stop at the first that holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emo.report.holm import holm


def refused_by_stepping_down(p_values, level):
    """Which null hypotheses Holm refuses, without any corrected p-value."""
    refused, left = set(), sorted(range(len(p_values)), key=lambda index: p_values[index])
    while left and p_values[left[0]] < level / len(left):
        refused.add(left.pop(0))
    return refused


@given(
    st.lists(st.floats(0.0, 1.0), max_size=12),
    st.floats(0.001, 0.999),
)
def test_a_corrected_p_below_the_level_is_a_refusal(p_values, level):
    corrected = holm(p_values)
    # Products and quotients round apart where a value lies on the level to the last digit.
    near = [abs(p * n - level) < 1e-9 for p in p_values for n in range(1, len(p_values) + 1)]
    if not any(near):
        refused = {index for index, p in enumerate(corrected) if p < level}
        assert refused == refused_by_stepping_down(p_values, level)


def test_published_example():
    """The four p-values of Holm's correction in R's documentation of p.adjust, by hand."""
    assert holm([0.01, 0.02, 0.03, 0.04]) == pytest.approx([0.04, 0.06, 0.06, 0.06])
    assert holm([0.5, 0.9, 0.001]) == pytest.approx([1.0, 1.0, 0.003])
    assert holm([]) == []


def test_order_is_kept_and_nothing_gets_smaller():
    p_values = np.random.default_rng(0).uniform(size=30).tolist()
    corrected = holm(p_values)
    assert all(c >= p for c, p in zip(corrected, p_values, strict=True))
    backwards = holm(p_values[::-1])
    assert backwards[::-1] == corrected
