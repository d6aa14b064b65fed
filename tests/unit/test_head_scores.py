"""Scores of heads, against scikit-learn and SciPy."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    precision_score,
    recall_score,
)

from emo.errors import DataError
from emo.head_scores import score_head
from emo.weighted_metrics import main_metric

LABELS = ["a", "b", "c", "never"]
NAMES = {
    "classification": {"macro_f1", "accuracy", "macro_precision", "macro_recall"},
    "pairs": {"average_precision", "macro_f1", "accuracy", "macro_precision", "macro_recall"},
    "sts": {"spearman", "pearson"},
}


def rows(family, count, seed):
    """Logits that are right more often than not, and gold values."""
    generator = np.random.default_rng(seed)
    if family == "sts":
        gold = generator.uniform(0, 5, size=count)
        return (gold - 2.5 + generator.normal(size=count)).astype(np.float32), gold
    classes = 3 if family == "classification" else 2
    gold = generator.integers(0, classes, size=count)
    logits = generator.normal(size=(count, 4 if family == "classification" else 2))
    logits[np.arange(count), gold] += 1
    return logits.astype(np.float32), np.array(LABELS)[gold] if classes == 3 else gold


def scored(family, validation=None, test=None):
    labels = {"classification": LABELS, "pairs": ["0", "1"], "sts": []}[family]
    given = {"validation": rows(family, 30, 1), "test": rows(family, 40, 2)}
    given |= {k: v for k, v in (("validation", validation), ("test", test)) if v is not None}
    return score_head(family, labels, given["validation"], given["test"], model="me on trec")


def class_scores(gold, predicted):
    shared = {"average": "macro", "zero_division": 0}
    return {
        "macro_f1": f1_score(gold, predicted, **shared),
        "accuracy": accuracy_score(gold, predicted),
        "macro_precision": precision_score(gold, predicted, **shared),
        "macro_recall": recall_score(gold, predicted, **shared),
    }


def expected(family, logits, gold):
    if family == "sts":
        scores = 5 * expit(logits.astype(np.float64))
        return {"spearman": spearmanr(scores, gold)[0], "pearson": pearsonr(scores, gold)[0]}
    if family == "classification":
        return class_scores(gold, np.array(LABELS)[logits.argmax(axis=1)])
    odds = logits[:, 1].astype(np.float64) - logits[:, 0]
    ranked = {"average_precision": average_precision_score(gold, odds)}
    return ranked | class_scores(gold, logits.argmax(axis=1))


@pytest.mark.parametrize("family", sorted(NAMES))
def test_metrics_are_those_of_other_libraries(family):
    scores = scored(family)
    assert scores.metrics.keys() == NAMES[family]
    assert scores.metrics == pytest.approx(expected(family, *rows(family, 40, 2)))
    assert scores.validation == pytest.approx(expected(family, *rows(family, 30, 1))[scores.main])
    assert scores.choices == {}, "nothing is chosen"


@pytest.mark.parametrize("family", sorted(NAMES))
def test_predictions_give_the_main_metric_again(family):
    scores = scored(family)
    gold, predicted = (scores.predictions[name].to_numpy() for name in ("gold", "predicted"))
    assert main_metric(family, gold, predicted) == pytest.approx(scores.metrics[scores.main])
    assert gold.tolist() == rows(family, 40, 2)[1].tolist()


def test_sure_answers_stay_in_order():
    """Probabilities of 1 are equal in float32; their odds are not."""
    gold = np.array([0, 0, 1, 1])
    logits = np.array([[0, 40], [0, 50], [0, 60], [0, 70]], dtype=np.float32)
    assert scored("pairs", test=(logits, gold)).metrics["average_precision"] == 1
    scores = np.array([20.0, 22.0, 24.0, 26.0], dtype=np.float32)
    judged = scored("sts", test=(scores, np.array([1.0, 2.0, 3.0, 4.0])))
    assert judged.metrics["spearman"] == pytest.approx(1)
    assert judged.predictions["predicted"].between(0, 5).all()


def test_a_label_that_the_head_does_not_know_is_a_wrong_answer():
    logits, gold = rows("classification", 40, 2)
    gold = np.where(np.arange(40) < 10, "unknown", gold)
    judged = scored("classification", test=(logits, gold))
    assert judged.metrics == pytest.approx(expected("classification", logits, gold))


@pytest.mark.parametrize(
    ("family", "split", "spoil", "said"),
    [
        ("sts", "test", lambda z, y: (0 * z, y), "one answer to all 40 test rows"),
        ("pairs", "validation", lambda z, y: (0 * z, y), "one answer to all 30 validation rows"),
        ("sts", "validation", lambda z, y: (z, 0 * y), "all 30 validation items have the gold"),
        ("pairs", "test", lambda z, y: (z, 0 * y + 1), "all 40 test items have the gold value 1"),
        ("classification", "test", lambda z, y: (z * np.nan, y), "to test rows are not all finite"),
    ],
)
def test_undefined_scores_are_errors(family, split, spoil, said):
    usual = rows(family, *((30, 1) if split == "validation" else (40, 2)))
    with pytest.raises(DataError, match=f"of me on trec is undefined: .*{said}"):
        scored(family, **{split: spoil(*usual)})
