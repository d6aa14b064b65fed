"""Scores from embeddings, against sklearn and scipy; undefined scores are refused."""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, average_precision_score, f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from emo.errors import DataError
from emo.metrics import (
    INVERSE_PENALTIES,
    best_threshold,
    cosines,
    score_classification,
    score_pairs,
    score_sts,
)


def blobs(seed, sizes=(90, 40, 50)):
    """Noisy clusters of three classes, for train, validation and test."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(3, 6))
    parts = []
    for size in sizes:
        y = generator.integers(0, 3, size=size)
        x = (centres[y] + 1.2 * generator.normal(size=(size, 6))).astype(np.float32)
        parts += [x, np.array(["x", "y", "z"])[y]]
    return parts


def test_classification_equals_a_plain_search():
    train_x, train_y, validation_x, validation_y, test_x, test_y = blobs(1)
    probes = [
        make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=2000)).fit(
            train_x.astype(float), train_y
        )
        for c in INVERSE_PENALTIES
    ]
    validation = [
        f1_score(validation_y, probe.predict(validation_x.astype(float)), average="macro")
        for probe in probes
    ]
    best = int(np.argmax(validation))
    predicted = probes[best].predict(test_x.astype(float))
    scores = score_classification(*blobs(1), model="m")
    assert scores.choices["C"] == INVERSE_PENALTIES[best]
    assert scores.validation == pytest.approx(validation[best])
    assert scores.predictions["predicted"].tolist() == predicted.tolist()
    assert scores.predictions["gold"].tolist() == test_y.tolist()
    assert scores.metrics["macro_f1"] == pytest.approx(f1_score(test_y, predicted, average="macro"))
    assert scores.metrics["accuracy"] == accuracy_score(test_y, predicted)
    assert scores.main == "macro_f1"


def test_equal_penalties_give_the_smallest():
    """Well-separated classes are perfect under any penalty."""
    x = np.array([[-5.0, 0.0], [5.0, 0.0]] * 20, dtype=np.float32)
    y = np.array(["no", "yes"] * 20)
    scores = score_classification(x, y, x, y, x, y, model="m")
    assert scores.choices["C"] == min(INVERSE_PENALTIES)
    assert scores.metrics == {"macro_f1": 1.0, "accuracy": 1.0}


def test_test_split_has_no_part_in_the_choice():
    train_x, train_y, validation_x, validation_y, test_x, test_y = blobs(2)
    parts = (train_x, train_y, validation_x, validation_y)
    whole = score_classification(*parts, test_x, test_y, model="m")
    half = score_classification(*parts, test_x[:20], test_y[:20], model="m")
    assert half.choices == whole.choices
    assert half.predictions.equals(whole.predictions[:20])


def test_pairs_equal_sklearn():
    generator = np.random.default_rng(3)
    y, test_y = generator.integers(0, 2, size=(2, 200))
    cosine, test_cosine = (labels / 3 + generator.normal(size=200) / 4 for labels in (y, test_y))
    scores = score_pairs(cosine, y, test_cosine, test_y, model="m")
    assert scores.metrics["average_precision"] == pytest.approx(
        average_precision_score(test_y, test_cosine)
    )
    assert scores.validation == pytest.approx(average_precision_score(y, cosine))
    threshold = scores.choices["threshold"]
    assert scores.metrics["accuracy"] == accuracy_score(test_y, test_cosine >= threshold)
    assert scores.predictions["predicted"].tolist() == test_cosine.tolist()


def test_threshold_equals_a_slow_search():
    generator = np.random.default_rng(4)
    for _ in range(20):
        y = generator.integers(0, 2, size=15)
        cosine = np.round(generator.normal(size=15), 1)
        distinct = sorted(set(cosine.tolist()))
        candidates = [(low + high) / 2 for low, high in zip(distinct, distinct[1:], strict=False)]
        hits = [np.mean((cosine >= candidate) == (y == 1)) for candidate in candidates]
        assert best_threshold(cosine, y) == candidates[int(np.argmax(hits))]


def test_equal_thresholds_give_the_smallest():
    assert best_threshold(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1])) == pytest.approx(
        0.15
    )


def test_sts_equals_scipy():
    generator = np.random.default_rng(5)
    gold = np.round(generator.uniform(0, 5, size=80), 1)
    cosine = gold / 10 + generator.normal(size=80)
    scores = score_sts(cosine[:9], gold[:9], cosine, gold, model="m")
    assert scores.validation == pytest.approx(spearmanr(cosine[:9], gold[:9]).statistic)
    assert scores.metrics["spearman"] == pytest.approx(spearmanr(cosine, gold).statistic)
    assert scores.metrics["pearson"] == pytest.approx(pearsonr(cosine, gold).statistic)
    assert scores.choices == {}


def test_cosines_are_computed_in_float64():
    a = np.array([[3.0, 4.0], [1e-20, 0.0]], dtype=np.float32)
    assert cosines(a, np.array([[4.0, 3.0], [1.0, 0.0]]), model="m") == pytest.approx([0.96, 1.0])


def test_cosines_refuse_other_shapes():
    with pytest.raises(ValueError, match=r"got \(2, 3\), \(1, 3\)"):
        cosines(np.ones((2, 3)), np.ones((1, 3)), model="m")


@pytest.mark.parametrize(
    ("value", "words"),
    [(np.nan, "1 of 3 vectors are not finite"), (np.inf, "number 1"), (0.0, "1 of 3 .* zero")],
)
def test_broken_vectors_are_refused_by_name(value, words):
    """Pitfall 98: a zero vector must fail the stage, not average in as NaN."""
    a = np.ones((3, 2))
    a[1] = value
    with pytest.raises(DataError, match=f"tiny on stsb.*{words}"):
        cosines(np.ones((3, 2)), a, model="tiny on stsb")
    x, y = blobs(6)[:2]
    x[1] = value
    with pytest.raises(DataError, match="macro_f1 of tiny"):
        score_classification(x, y, x, y, x, y, model="tiny")


def test_a_collapsed_student_is_refused():
    """Vectors that differ by rounding alone still give a number from every metric."""
    generator = np.random.default_rng(8)
    x = (1 + 1e-7 * generator.normal(size=(30, 4))).astype(np.float32)
    y = np.array(["a", "b"] * 15)
    with pytest.raises(DataError, match="macro_f1 of tiny.*all 60 vectors are equal"):
        score_classification(x, y, x, y, x, y, model="tiny")
    cosine = cosines(x[:15], x[15:], model="tiny")
    with pytest.raises(DataError, match=r"spearman of tiny.*all 15 cosines are equal \(1\.0"):
        score_sts(cosine, np.arange(15.0), cosine, np.arange(15.0), model="tiny")
    with pytest.raises(DataError, match="average_precision of tiny"):
        score_pairs(cosine, np.arange(15) % 2, cosine, np.arange(15) % 2, model="tiny")


def test_gold_of_one_value_is_refused():
    cosine = np.array([0.1, 0.2])
    with pytest.raises(DataError, match="spearman of m .*all 2 test items have the gold value 3.0"):
        score_sts(cosine, cosine, cosine, np.array([3.0, 3.0]), model="m")
    with pytest.raises(DataError, match="all 2 validation items have the gold value 3.0"):
        score_sts(cosine, np.array([3.0, 3.0]), cosine, cosine, model="m")
    with pytest.raises(DataError, match="average_precision of m .*gold value 0"):
        score_pairs(cosine, np.array([0, 1]), cosine, np.array([0, 0]), model="m")
    x = np.eye(2)
    with pytest.raises(DataError, match="of m: the train split holds one class only, a;"):
        score_classification(x, np.array(["a", "a"]), x, np.array(["a", "b"]), x, x[0], model="m")
