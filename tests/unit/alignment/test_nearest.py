"""Distances and mutual nearest pairs."""

import numpy as np

from emo.alignment.nearest import count_ties, edit_distances, mutual_nearest


def test_repeated_strings_are_spread_back():
    distances = edit_distances(["b", "aa", "b"], ["b", "b"])
    assert distances.tolist() == [[0, 0], [2, 2], [0, 0]]


def test_empty_sides():
    assert edit_distances([], ["a"]).shape == (0, 1)
    assert edit_distances(["a"], []).shape == (1, 0)
    assert [len(side) for side in mutual_nearest(np.empty((0, 3), dtype=np.int32))] == [0, 0]


def test_equal_costs_go_to_the_lowest_index_on_both_sides():
    teacher, student = mutual_nearest(np.zeros((2, 3), dtype=np.int32))
    assert (teacher.tolist(), student.tolist()) == ([0], [0])


def test_ties_are_counted_per_pair():
    distances = np.array([[0, 0, 4], [4, 4, 1]], dtype=np.int32)
    assert count_ties(distances, np.array([0, 1]), np.array([0, 2])) == 1
