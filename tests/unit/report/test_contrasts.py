"""Contrasts hold what the bootstrap gives, corrected within one baseline and one family."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from emo.config import Comparison
from emo.report import Difference, paired_difference
from emo.report.bootstrap import Resampled
from emo.report.contrasts import Contrast, study_contrasts, write_differences
from emo.report.holm import holm

METHODS = ("undistilled", "pooled", "emo", "worse", "other")
COMPARE = Comparison(method="emo", baseline="pooled")
FAMILIES = ("average", "classification", "sts")


def resampled(name, shift, seeds=(1, 2)):
    """Made-up averages: what all methods share, a shift of their own and some noise."""
    shared = np.random.default_rng(0).normal(scale=0.02, size=(400, 1))
    own = np.random.default_rng(len(name))
    drawn = {
        family: 0.5 + shift * factor + shared + own.normal(scale=0.01, size=(400, len(seeds)))
        for family, factor in zip(FAMILIES, (1, 2, 0), strict=True)
    }
    observed = {family: scores.mean(axis=0) for family, scores in drawn.items()}
    return Resampled(name, seeds, {"trec": "aa"}, observed, drawn)


@pytest.fixture
def methods():
    shifts = dict(zip(METHODS, (-0.05, 0.0, 0.02, -0.03, 0.001), strict=True))
    return {
        name: resampled(name, shift, (0,) if name == "undistilled" else (1, 2))
        for name, shift in shifts.items()
    }


@pytest.fixture
def contrasts(methods):
    return study_contrasts(COMPARE, {("e5", "minilm"): methods})


def test_every_method_meets_both_baselines_on_every_family(contrasts):
    found = {(each.baseline, each.family, each.method) for each in contrasts}
    against_pooled = product(["pooled"], FAMILIES, ["emo", "worse", "other"])
    against_none = product(["undistilled"], FAMILIES, ["pooled", "emo", "worse", "other"])
    assert found == {*against_pooled, *against_none}
    assert len(contrasts) == len(found)
    assert {(each.teacher, each.student) for each in contrasts} == {("e5", "minilm")}


def test_a_contrast_is_the_paired_difference(contrasts, methods):
    for each in contrasts:
        expected = paired_difference(methods[each.method], methods[each.baseline], each.family)
        assert each.difference == expected
        assert each.seeds == (1, 2)


@pytest.mark.parametrize(("baseline", "family"), [*product(["pooled", "undistilled"], FAMILIES)])
def test_correction_is_within_one_baseline_and_family(contrasts, baseline, family):
    mine = [each for each in contrasts if (each.baseline, each.family) == (baseline, family)]
    assert [each.p_holm for each in mine] == holm([each.difference.p for each in mine])
    means = [each.difference.mean for each in mine]
    assert means == sorted(means, reverse=True)


def test_several_students_are_corrected_apart(methods):
    pairs = {("e5", "minilm"): methods, ("e5", "other"): methods}
    both = study_contrasts(COMPARE, pairs)
    one = study_contrasts(COMPARE, {("e5", "minilm"): methods})
    assert [each.p_holm for each in both] == [each.p_holm for each in one] * 2


def test_verdicts(contrasts):
    verdicts = {
        each.method: each.verdict
        for each in contrasts
        if (each.baseline, each.family) == ("pooled", "classification")
    }
    assert verdicts == {
        "emo": "better", "worse": "worse", "other": "no significant difference"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("mean", "p_holm", "verdict"),
    [
        (0.1, 0.0499, "better"),
        (0.1, 0.05, "no significant difference"),
        (-0.1, 0.0499, "worse"),
        (-0.1, 1.0, "no significant difference"),
    ],
)
def test_the_verdict_is_that_of_the_corrected_p(mean, p_holm, verdict):
    difference = Difference(mean, mean - 0.01, mean + 0.01, 0.001, 0)
    contrast = Contrast("e5", "minilm", "sts", "emo", "pooled", difference, p_holm, (1,))
    assert contrast.verdict == verdict


def test_the_file_holds_every_digit_and_is_the_same_twice(contrasts, tmp_path):
    write_differences(contrasts, tmp_path / "a.csv")
    write_differences(contrasts, tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    table = pd.read_csv(tmp_path / "a.csv")
    assert list(table.columns) == [
        "teacher", "student", "family", "method", "baseline", "difference", "low", "high", "p",
        "p_holm", "verdict", "undefined", "seeds",
    ]  # fmt: skip
    assert table["difference"].tolist() == [each.difference.mean for each in contrasts]
    for name in ("low", "high", "p", "undefined"):
        assert table[name].tolist() == [getattr(each.difference, name) for each in contrasts]
    assert table["p_holm"].tolist() == [each.p_holm for each in contrasts]
    assert table["verdict"].tolist() == [each.verdict for each in contrasts]
    assert set(table["seeds"]) == {"1 2"}
