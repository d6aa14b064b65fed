"""The paired bootstrap, against a slow loop with sklearn and scipy, and scipy.stats.bootstrap."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import average_precision_score, f1_score

from emo.errors import DataError
from emo.report import paired_difference, resample
from emo.report.averages import method_runs
from emo.report.bootstrap import Resampled, draw_items

TASKS = ("trec", "stsb", "sick", "stsb-pairs")
PAIR = ("e5", "minilm")
SLOW = {
    "trec": lambda gold, predicted: f1_score(gold, predicted, average="macro"),
    "stsb": lambda gold, predicted: stats.spearmanr(gold, predicted).statistic,
    "sick": lambda gold, predicted: stats.spearmanr(gold, predicted).statistic,
    "stsb-pairs": average_precision_score,
}


def runs_of(fake, method, tasks=TASKS):
    return method_runs(fake.runs, PAIR, method, tasks)


def slow_average(method, seed, counts):
    """Average over families of metrics on items written out as often as they are drawn."""
    scores = {}
    for task in TASKS:
        table = pd.read_parquet(method.runs[task][seed].predictions)
        drawn = np.repeat(np.arange(len(table)), counts[task])
        gold, predicted = (table[column].to_numpy()[drawn] for column in ("gold", "predicted"))
        scores[task] = SLOW[task](gold, predicted)
    return np.mean([scores["trec"], (scores["stsb"] + scores["sick"]) / 2, scores["stsb-pairs"]])


def counts_of(method, resamples, seed):
    items = {
        task: len(pd.read_parquet(run[method.seeds[0]].predictions))
        for task, run in method.runs.items()
    }
    return {
        task: draw_items(items[task], method.runs[task][method.seeds[0]].items, resamples, seed)
        for task in TASKS
    }


def test_averages_equal_a_slow_loop(fake):
    emo = runs_of(fake, "emo")
    resampled = resample(emo, resamples=25, seed=4)
    counts = counts_of(emo, 25, 4)
    expected = [
        [slow_average(emo, seed, {task: counts[task][row] for task in TASKS}) for seed in (1, 2)]
        for row in range(25)
    ]
    assert resampled.drawn["average"] == pytest.approx(np.array(expected), abs=1e-12)
    assert resampled.observed["average"].mean() == pytest.approx(emo.average().mean)


def test_families_are_the_means_of_their_tasks(fake):
    emo = runs_of(fake, "emo")
    resampled = resample(emo, resamples=20)
    alone = {task: resample(runs_of(fake, "emo", [task]), resamples=20) for task in TASKS}
    assert set(resampled.drawn) == {"classification", "pairs", "sts", "average"}
    for part in ("observed", "drawn"):
        by_task = {task: getattr(alone[task], part)["average"] for task in TASKS}
        found = getattr(resampled, part)
        assert (found["classification"] == by_task["trec"]).all()
        assert found["sts"] == pytest.approx((by_task["stsb"] + by_task["sick"]) / 2)


def test_difference_equals_a_slow_loop(fake):
    """Both methods see the same items and the same drawn seeds."""
    a, b = (resample(runs_of(fake, method), resamples=200) for method in ("emo", "pooled"))
    drawn = np.random.default_rng([0, 0]).integers(0, 2, size=(200, 2))
    differences = [
        np.mean([a.drawn["average"][row, s] for s in seeds])
        - np.mean([b.drawn["average"][row, s] for s in seeds])
        for row, seeds in enumerate(drawn)
    ]
    difference = paired_difference(a, b)
    expected = np.percentile(differences, [2.5, 97.5])
    assert [difference.low, difference.high] == pytest.approx(expected)
    assert difference.mean == pytest.approx(
        a.observed["average"].mean() - b.observed["average"].mean()
    )
    assert difference.undefined == 0
    # scipy counts the observation in as well, and doubles the smaller side.
    expected = stats.monte_carlo_test(
        [0.0], lambda size: np.reshape(differences, size), np.mean, n_resamples=200
    )
    assert difference.p == pytest.approx(expected.pvalue)
    assert paired_difference(b, a).p == difference.p


def test_difference_on_a_family_is_that_on_its_tasks_alone(fake):
    a, b = (resample(runs_of(fake, method), resamples=50) for method in ("emo", "pooled"))
    alone = [resample(runs_of(fake, method, ["trec"]), 50) for method in ("emo", "pooled")]
    assert paired_difference(a, b, "classification") == paired_difference(*alone)
    assert paired_difference(a, b, "classification") != paired_difference(a, b)


def test_interval_agrees_with_scipy_on_one_task(fake):
    emo, undistilled = (runs_of(fake, method, ["stsb"]) for method in ("emo", "undistilled"))
    one_seed = dataclasses.replace(emo, seeds=(1,))
    ours = paired_difference(resample(one_seed, 4000), resample(undistilled, 4000))
    tables = [
        pd.read_parquet(method.runs["stsb"][seed].predictions)
        for method, seed in ((emo, 1), (undistilled, 0))
    ]

    def statistic(gold, left, right):
        ranks = (stats.spearmanr(gold, side).statistic for side in (left, right))
        return next(ranks) - next(ranks)

    columns = (tables[0]["gold"], tables[0]["predicted"], tables[1]["predicted"])
    theirs = stats.bootstrap(
        columns, statistic, paired=True, vectorized=False, method="percentile",
        n_resamples=2000, rng=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_a_method_does_not_differ_from_itself(fake):
    a = resample(runs_of(fake, "emo"), resamples=50)
    difference = paired_difference(a, a)
    assert (difference.mean, difference.low, difference.high) == (0.0, 0.0, 0.0)
    assert difference.p == 1.0
    assert not difference.significant


def test_clear_differences_are_significant_both_ways(fake):
    a, b = (resample(runs_of(fake, m), resamples=300) for m in ("emo", "undistilled"))
    assert paired_difference(a, b).low > 0
    assert paired_difference(b, a).high < 0
    assert paired_difference(b, a).significant


def test_same_seed_gives_the_same_interval_and_another_gives_another(fake):
    emo, pooled = runs_of(fake, "emo"), runs_of(fake, "pooled")
    first, again, other = (
        paired_difference(resample(emo, 100, seed), resample(pooled, 100, seed), seed=seed)
        for seed in (0, 0, 1)
    )
    assert first == again
    assert first.low != other.low


def test_tasks_on_the_same_sentences_draw_the_same_items():
    assert (draw_items(90, "bb", 5, 0) == draw_items(90, "bb", 5, 0)).all()
    assert (draw_items(90, "bb", 5, 0) != draw_items(90, "cc", 5, 0)).any()


def test_blocks_do_not_change_the_result(fake, monkeypatch):
    emo = runs_of(fake, "emo")
    whole = resample(emo, resamples=30)
    monkeypatch.setattr("emo.report.bootstrap.BLOCK_CELLS", 500)
    assert (resample(emo, resamples=30).drawn["average"] == whole.drawn["average"]).all()


def resampled(method="a", seeds=(1,), items="aa", averages=((0.5,), (0.75,))):
    observed = np.full(len(seeds), 0.5)
    return Resampled(
        method, seeds, {"trec": items}, {"average": observed}, {"average": np.array(averages)}
    )


def test_undefined_resamples_are_counted_and_left_out():
    difference = paired_difference(
        resampled(averages=[[np.nan], [0.75]]), resampled(averages=[[0.5], [0.5]])
    )
    assert (difference.low, difference.high, difference.undefined) == (0.25, 0.25, 1)
    assert difference.p == 1.0  # of one resample
    with pytest.raises(DataError, match="gives a and b a score"):
        paired_difference(resampled(averages=[[np.nan]]), resampled(method="b", averages=[[0.5]]))


def test_what_cannot_be_paired_is_refused():
    with pytest.raises(DataError, match="a and b were judged on different test items of trec"):
        paired_difference(resampled(), resampled("b", items="bb"))
    two = np.zeros((2, 2))
    with pytest.raises(DataError, match=r"a has the seeds \(1, 2\) and b \(1, 3\)"):
        paired_difference(
            resampled(seeds=(1, 2), averages=two), resampled("b", (1, 3), averages=two)
        )
    with pytest.raises(ValueError, match="got 2, 1"):
        paired_difference(resampled(), resampled("b", averages=[[0.5]]))


def test_predictions_that_do_not_give_the_score_are_refused(fake):
    path = fake.path("emo", "trec", 1) / "predictions.parquet"
    table = pd.read_parquet(path)
    table["predicted"] = table["predicted"].iloc[::-1].to_numpy()
    table.to_parquet(path)
    with pytest.raises(DataError, match="does not give the macro_f1 .*e5/minilm/trec/emo/seed1"):
        resample(runs_of(fake, "emo"), resamples=2)
    path.write_text("damaged")
    with pytest.raises(DataError, match=r"trec/1/predictions\.parquet: no predictions"):
        resample(runs_of(fake, "emo"), resamples=2)


def test_seeds_judged_on_different_items_are_refused(fake):
    emo = runs_of(fake, "emo")
    other = dataclasses.replace(emo.runs["stsb"][2], items="cc")
    changed = {**emo.runs, "stsb": {1: emo.runs["stsb"][1], 2: other}}
    with pytest.raises(DataError, match="stsb/emo/seed2 and .*seed1 were judged on different"):
        resample(dataclasses.replace(emo, runs=changed), resamples=2)
