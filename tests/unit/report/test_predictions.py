"""How nearly two models answer alike."""

from dataclasses import replace

import pandas as pd
import pytest
from scipy.stats import spearmanr

from emo.errors import DataError
from emo.report.predictions import fidelity


def runs_of(fake, task):
    found = {run.method: run for run in fake.runs if run.task == task and run.seed in (0, 1)}
    return found["emo"], found["teacher"]


def answers(*runs):
    return [pd.read_parquet(run.predictions)["predicted"] for run in runs]


def test_classes_agree_where_the_answers_are_the_same(fake):
    run, teacher = runs_of(fake, "trec")
    mine, wanted = answers(run, teacher)
    same = sum(a == b for a, b in zip(mine, wanted, strict=True)) / len(mine)
    assert 0 < same < 1
    assert fidelity(run, teacher) == same
    assert fidelity(teacher, teacher) == 1.0


@pytest.mark.parametrize("task", ["stsb", "stsb-pairs"])
def test_pairs_and_scores_agree_in_rank(fake, task):
    run, teacher = runs_of(fake, task)
    oracle = spearmanr(*answers(run, teacher)).statistic
    assert fidelity(run, teacher) == pytest.approx(oracle, abs=1e-12)


def test_runs_of_other_test_items_are_not_compared(fake):
    run, teacher = runs_of(fake, "stsb")
    with pytest.raises(DataError, match=r"emo/seed1 and .*teacher/seed0 were judged on different"):
        fidelity(run, replace(teacher, items="0"))
