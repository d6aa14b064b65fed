"""The order-preserving map, case by case."""

from itertools import combinations

import editdistance
import numpy as np
import pytest

from emo.alignment.mined_dp import LEFT_OVER, POINT, MinedDpPairs

from .conftest import pieces, rows


def pairs(teacher, student):
    return [row[:2] for row in rows(MinedDpPairs.pair(teacher, student))]


def test_pairs_never_cross():
    """`mined` would pair both words; in order only one of them can be."""
    teacher, student = pieces(["cat", "dog"], [3, 11]), pieces(["dog", "cat"], [3, 11])
    assert len(pairs(teacher, student)) == 1


def test_a_similar_pair_beats_two_tokens_left_over():
    teacher, student = pieces(["abcdefgh"], [8]), pieces(["axxxxxxx"], [8])
    assert rows(MinedDpPairs.pair(teacher, student)) == [(1, 1, 7)]


def test_nothing_in_common_is_never_paired():
    assert pairs(pieces(["abc"], [3]), pieces(["xyz"], [3])) == []
    assert pairs(pieces([""], [0]), pieces([""], [0])) == []


def test_equal_costs_go_to_the_nearer_midpoints_then_to_the_earlier_tokens():
    one = pieces(["the"], [19])
    assert pairs(pieces(["the", "the", "the"], [3, 11, 19]), one) == [(3, 1)]
    assert pairs(pieces(["é", "é", "é"], [1, 1, 1]), pieces(["é"], [1])) == [(1, 1)]
    assert pairs(pieces(["é"], [1]), pieces(["é", "é"], [1, 1])) == [(1, 1)]


def test_equal_sums_of_shares_are_ties():
    """1/2 + 1/3 + 1 by either map: rounded shares would take the one that lies farther apart."""
    assert all(POINT % length == 0 for length in range(1, 17))
    assert LEFT_OVER * 2 == POINT


@pytest.mark.parametrize("seed", range(8))
def test_no_other_map_in_order_costs_less(seed):
    """Every map of a short text that never crosses is tried."""
    random = np.random.default_rng(seed)
    words = ["a", "ab", "abc", "ba", "b", "cab", ""]
    left = [words[index] for index in random.integers(len(words), size=5)]
    right = [words[index] for index in random.integers(len(words), size=4)]
    sizes = [np.cumsum([2 * len(word) + 2 for word in side]) for side in (left, right)]
    teacher, student = pieces(left, sizes[0]), pieces(right, sizes[1])

    def cost(made):
        total, gaps = (len(left) + len(right) - 2 * len(made)) * LEFT_OVER, 0
        for i, j in made:
            distance = editdistance.eval(left[i], right[j])
            longer = max(len(left[i]), len(right[j]))
            if distance >= longer:
                return (float("inf"), 0)
            total += distance * POINT // longer
            gaps += abs(int(teacher.middles[i]) - int(student.middles[j]))
        return total, gaps

    every = [
        list(zip(of_left, of_right, strict=True))
        for size in range(5)
        for of_left in combinations(range(5), size)
        for of_right in combinations(range(4), size)
    ]
    found = [(i - 1, j - 1) for i, j in pairs(teacher, student)]
    assert found in every
    assert cost(found) == min(map(cost, every))
