import json

import pytest

from emo.errors import DataError
from emo.search import Trial, choose, read_choice, with_chosen_rate


@pytest.fixture
def trial(tmp_path):
    def write(rate, test=0.5, **validation):
        """Write a trial whose tasks are named after their families."""
        paths = []
        for family, score in validation.items():
            path = tmp_path / f"{rate}-{family}.json"
            record = {"task": family, "family": family.rstrip("2"), "validation": score}
            path.write_text(json.dumps(record | {"metrics": {"spearman": test}}))
            paths.append(path)
        return Trial(learning_rate=rate, scores=paths)

    return write


def test_the_best_average_over_families_wins(trial, tmp_path):
    """One family has two tasks: it must not count twice."""
    trials = [
        trial(1e-3, classification=0.9, sts=0.5, sts2=0.5),  # 0.7, by tasks 0.63
        trial(1e-4, classification=0.6, sts=0.7, sts2=0.7),  # 0.65, by tasks 0.67
    ]
    choice = choose(trials, tmp_path / "chosen.json")
    assert choice.learning_rate == 1e-3
    assert choice.validation == pytest.approx({"0.0001": 0.65, "0.001": 0.7})
    assert read_choice(tmp_path / "chosen.json") == choice


def test_test_scores_have_no_part_in_the_choice(trial, tmp_path):
    trials = [trial(1e-3, test=0.1, sts=0.8), trial(1e-4, test=0.9, sts=0.7)]
    assert choose(trials, tmp_path / "chosen.json").learning_rate == 1e-3


@pytest.mark.parametrize("rates", [(1e-3, 1e-4), (1e-4, 1e-3)])
def test_of_equals_the_smallest_wins_in_any_order(trial, tmp_path, rates):
    trials = [trial(rate, sts=0.7) for rate in rates]
    assert choose(trials, tmp_path / "chosen.json").learning_rate == 1e-4


@pytest.mark.parametrize("given", [{}, {"learning_rate": 1.0}])
def test_the_choice_replaces_the_rate_alone(trial, tmp_path, given):
    choose([trial(1e-3, sts=0.7), trial(1e-4, sts=0.6)], tmp_path / "chosen.json")
    settings = {"seed": 1, "training": {"steps": 5} | given}
    chosen = with_chosen_rate(settings, tmp_path / "chosen.json")
    assert chosen == {"seed": 1, "training": {"steps": 5, "learning_rate": 1e-3}}


def test_damaged_files_are_named(tmp_path, trial):
    (tmp_path / "chosen.json").write_text('{"learning_rate": "high"}')
    with pytest.raises(DataError, match=r"chosen\.json is no choice of a search"):
        read_choice(tmp_path / "chosen.json")
    broken = trial(1e-3, sts=None)
    with pytest.raises(DataError, match=r"0\.001-sts\.json is no score file"):
        choose([broken], tmp_path / "chosen.json")
