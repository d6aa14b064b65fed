import pytest

from emo.errors import DataError
from emo.report.averages import method_runs, over_families

TASKS = ("trec", "stsb", "sick", "stsb-pairs")
PAIR = ("e5", "minilm")


def test_a_family_counts_once():
    scores = {"trec": 1.0, "stsb": 0.0, "sick": 0.0, "sts12": 0.0}
    families = dict.fromkeys(scores, "sts") | {"trec": "classification"}
    assert over_families(scores, families) == 0.5


def test_the_average_is_taken_for_each_seed_first(fake):
    emo = method_runs(fake.runs, PAIR, "emo", TASKS)
    by_seed = [
        (
            emo.runs["trec"][seed].score
            + (emo.runs["stsb"][seed].score + emo.runs["sick"][seed].score) / 2
            + emo.runs["stsb-pairs"][seed].score
        )
        / 3
        for seed in (1, 2)
    ]
    average = emo.average()
    assert average.mean == pytest.approx(sum(by_seed) / 2)
    assert average.deviation == pytest.approx(abs(by_seed[0] - by_seed[1]) / 2**0.5)


def test_a_missing_seed_is_named(fake):
    runs = [run for run in fake.runs if (run.method, run.task, run.seed) != ("emo", "sick", 2)]
    with pytest.raises(DataError, match="e5/minilm: emo lacks seed 2 on sick"):
        method_runs(runs, PAIR, "emo", TASKS)


def test_a_missing_method_is_named(fake):
    with pytest.raises(DataError, match="no run of emo-paper"):
        method_runs(fake.runs, PAIR, "emo-paper", TASKS)
