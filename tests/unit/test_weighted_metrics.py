"""Metrics on resamples, against sklearn and scipy on the items written out."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, f1_score

from emo.weighted_metrics import average_precision, macro_f1, main_metric, spearman


@pytest.fixture
def generator():
    return np.random.default_rng(7)


def resamples(generator, items, count=40):
    drawn = generator.integers(0, items, size=(count, items))
    return drawn, np.stack([np.bincount(row, minlength=items) for row in drawn])


def test_macro_f1_equals_sklearn_on_each_resample(generator):
    """Classes that a resample lacks must not count as zero."""
    gold = generator.choice(["a", "b", "c", "d"], size=25, p=[0.5, 0.3, 0.15, 0.05])
    predicted = np.where(generator.random(25) < 0.6, gold, generator.permutation(gold))
    drawn, counts = resamples(generator, 25)
    expected = [f1_score(gold[row], predicted[row], average="macro") for row in drawn]
    assert len({len(np.unique(gold[row])) for row in drawn}) > 1
    assert macro_f1(gold, predicted, counts) == pytest.approx(expected, abs=1e-12)


def test_average_precision_equals_sklearn_with_ties(generator):
    gold = generator.integers(0, 2, size=60)
    score = np.round(generator.normal(size=60) + gold, 1)
    drawn, counts = resamples(generator, 60)
    expected = [average_precision_score(gold[row], score[row]) for row in drawn]
    assert len(np.unique(score)) < 60
    assert average_precision(gold, score, counts) == pytest.approx(expected, abs=1e-12)


def test_spearman_equals_scipy_with_ties(generator):
    gold = np.round(generator.uniform(0, 5, size=60), 0)
    score = np.round(gold / 5 + generator.normal(size=60), 1)
    drawn, counts = resamples(generator, 60)
    expected = [spearmanr(gold[row], score[row]).statistic for row in drawn]
    assert spearman(gold, score, counts) == pytest.approx(expected, abs=1e-12)


def test_values_by_hand():
    ones = np.ones((1, 4))
    assert macro_f1(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), ones) == pytest.approx(
        [(2 / 3 + 4 / 5) / 2]
    )
    ranked = average_precision(np.array([1, 0, 1, 0]), np.array([4.0, 3.0, 2.0, 1.0]), ones)
    assert ranked == pytest.approx([(1 + 2 / 3) / 2])
    assert spearman(np.arange(4), np.array([1.0, 3.0, 2.0, 4.0]), ones) == pytest.approx([0.8])


def test_undefined_resamples_are_nan_and_leave_the_others_alone():
    counts = np.array([[0, 2], [1, 1]])
    assert np.isnan(average_precision(np.array([1, 0]), np.array([0.2, 0.1]), counts)).tolist() == [
        True,
        False,
    ]
    assert np.isnan(spearman(np.array([1.0, 2.0]), np.array([0.2, 0.1]), counts)).tolist() == [
        True,
        False,
    ]


def test_main_metric_counts_each_item_once():
    assert main_metric("sts", np.array([1.0, 2.0, 3.0]), np.array([0.3, 0.2, 0.1])) == -1.0


@pytest.mark.parametrize("metric", [macro_f1, average_precision, spearman])
def test_wrong_shapes_are_named(metric):
    with pytest.raises(ValueError, match=r"got \(2,\), \(3,\), \(1, 2\)"):
        metric(np.zeros(2), np.zeros(3), np.ones((1, 2)))
