"""Distances, mutual nearest pairs and ties."""

import numpy as np

from emo.alignment.nearest import PairIndex, count_ties, edit_distances, mutual_nearest


def test_empty_sides():
    assert edit_distances([], ["a"]).shape == (0, 1)
    assert edit_distances(["a"], []).shape == (1, 0)


def test_equal_costs_go_to_the_lowest_index_on_both_sides():
    pairs = mutual_nearest(np.zeros((2, 2, 3), dtype=np.int32))
    assert [index.tolist() for index in pairs] == [[0, 1], [0, 0], [0, 0]]


def test_padding_is_nobodys_nearest():
    cost = np.array([[[5, 9, 9], [7, 9, 9]]])  # two teacher tokens, one student token
    assert [index.tolist() for index in mutual_nearest(cost)] == [[0], [0], [0]]


def test_ties_are_counted_per_pair():
    distances = np.array([[[0, 0, 4], [4, 4, 1]]], dtype=np.int32)
    pairs = PairIndex(*np.array([[0, 0], [0, 1], [0, 2]]).reshape(3, 2))
    assert count_ties(distances, pairs) == 1
    same_column = np.array([[[2, 9], [2, 9]]])
    assert count_ties(same_column, PairIndex(*np.zeros((3, 1), dtype=int))) == 1
