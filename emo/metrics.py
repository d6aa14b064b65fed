"""Scores of frozen embeddings, family by family: arrays in, scores out.

classification  logistic regression on the embeddings; macro-F1 (main), accuracy
pairs           cosine of the two sentences; average precision (main), accuracy
sts             cosine of the two sentences; Spearman (main), Pearson

Everything that is chosen (regularisation, threshold) is chosen on the validation split. A score
that is undefined is an error and never a NaN, so that no average can hide it. The protocol is
the frozen-embedding one of the studies that followed the EMO paper (EMNLP 2025).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from emo.errors import DataError
from emo.undefined_scores import check_cosines, check_gold, check_not_equal, check_vectors
from emo.weighted_metrics import main_metric

INVERSE_PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)
MAX_ITERATIONS = 2000

Matrix = NDArray[Any]
Vector = NDArray[Any]


@dataclass(frozen=True, slots=True)
class FamilyScores:
    """Scores of one model on one task.

    Attributes:
        metrics: Metric names and values, all finite.
        main: The metric that averages and comparisons use.
        validation: That metric on the validation split, by which a study may choose.
        predictions: One row for each test item in the order given: ``gold`` and ``predicted``
            (a label, or the cosine), enough to compute the main metric again.
        choices: What was chosen on the validation split.
    """

    metrics: dict[str, float]
    main: str
    validation: float
    predictions: pd.DataFrame
    choices: dict[str, float]


def cosines(a: Matrix, b: Matrix, *, model: str) -> NDArray[np.float64]:
    """Return the cosine of each row of ``a`` with the same row of ``b``.

    Args:
        a: Embeddings, ``(P, D)``.
        b: Embeddings, ``(P, D)``.
        model: Who made them, for errors.

    Returns:
        Cosines in float64, ``(P,)``.

    Raises:
        ValueError: The shapes differ.
        DataError: A vector is not finite, or zero.

    Example:
        >>> cosines(np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]]), model="m").round(3).tolist()
        [0.707]
    """
    if a.shape != b.shape or a.ndim != 2:
        raise ValueError(f"expected two (P, D) matrices of one shape, got {a.shape}, {b.shape}")
    check_vectors(a, model, "the cosine")
    check_vectors(b, model, "the cosine")
    a, b = a.astype(np.float64), b.astype(np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray((a * b).sum(axis=1) / norms)


def score_classification(
    train_x: Matrix,
    train_y: Vector,
    validation_x: Matrix,
    validation_y: Vector,
    test_x: Matrix,
    test_y: Vector,
    *,
    model: str,
) -> FamilyScores:
    """Score embeddings by a logistic regression that is fitted on the train split alone.

    The features are standardised with the train split's mean and deviation. The inverse penalty
    C is the one of :data:`INVERSE_PENALTIES` with the highest macro-F1 on the validation split,
    the smallest of equals. Nothing is random: L-BFGS starts from zero.

    Args:
        train_x: Embeddings, ``(N_train, D)``.
        train_y: Labels, ``(N_train,)``.
        validation_x: Embeddings, ``(N_validation, D)``.
        validation_y: Labels, ``(N_validation,)``.
        test_x: Embeddings, ``(N_test, D)``.
        test_y: Labels, ``(N_test,)``.
        model: Who made the embeddings, for errors.

    Returns:
        ``macro_f1`` (main) and ``accuracy``, and the chosen ``C``.

    Raises:
        DataError: Vectors are not finite, zero or all equal; or the train split has one class.
    """
    for x in (train_x, validation_x, test_x):
        check_vectors(x, model, "macro_f1")
    check_not_equal(np.concatenate([train_x, test_x]), model, "macro_f1")
    if len(np.unique(train_y)) < 2:
        raise DataError(
            f"macro_f1 of {model}: the train split holds one class only, {train_y[0]}; "
            "a classification task needs two"
        )
    scaler = StandardScaler().fit(train_x.astype(np.float64))
    train_x, validation_x, test_x = map(scaler.transform, (train_x, validation_x, test_x))
    best_score, best_c, predicted = -1.0, 0.0, test_y
    for c in INVERSE_PENALTIES:
        probe = LogisticRegression(C=c, max_iter=MAX_ITERATIONS).fit(train_x, train_y)
        score = main_metric("classification", validation_y, probe.predict(validation_x))
        if score > best_score:
            best_score, best_c, predicted = score, c, probe.predict(test_x)
    metrics = {
        "macro_f1": main_metric("classification", test_y, predicted),
        "accuracy": float(np.mean(predicted == test_y)),
    }
    predictions = predictions_table(test_y, predicted)
    return FamilyScores(metrics, "macro_f1", best_score, predictions, {"C": best_c})


def score_pairs(
    validation_cosine: Vector,
    validation_y: Vector,
    test_cosine: Vector,
    test_y: Vector,
    *,
    model: str,
) -> FamilyScores:
    """Score the cosines of labelled sentence pairs.

    A pair is called positive when its cosine is at least the threshold. Thresholds tried are the
    midpoints between neighbouring distinct cosines of the validation split; the one with the
    highest accuracy there is taken, the smallest of equals.

    Args:
        validation_cosine: ``(N_validation,)``.
        validation_y: 1 for a positive pair, else 0, ``(N_validation,)``.
        test_cosine: ``(N_test,)``.
        test_y: 1 for a positive pair, else 0, ``(N_test,)``.
        model: Who made the embeddings, for errors.

    Returns:
        ``average_precision`` (main) and ``accuracy``, and the chosen ``threshold``.

    Raises:
        DataError: Cosines are not finite or all equal, or a test label never occurs.
    """
    judged = {"validation": (validation_cosine, validation_y), "test": (test_cosine, test_y)}
    for split, (cosine, y) in judged.items():
        check_cosines(cosine, model, "average_precision")
        check_gold(y, split, model, "average_precision")
    threshold = best_threshold(validation_cosine, validation_y)
    metrics = {
        "average_precision": main_metric("pairs", test_y, test_cosine),
        "accuracy": float(np.mean((test_cosine >= threshold) == (test_y == 1))),
    }
    validation = main_metric("pairs", validation_y, validation_cosine)
    predictions = predictions_table(test_y, test_cosine)
    choices = {"threshold": threshold}
    return FamilyScores(metrics, "average_precision", validation, predictions, choices)


def best_threshold(cosine: Vector, y: Vector) -> float:
    """Return the midpoint between cosines that splits the labels best, the smallest of equals.

    Args:
        cosine: At least two distinct values, ``(N,)``.
        y: 1 for a positive pair, else 0, ``(N,)``.

    Raises:
        ValueError: All cosines are equal.

    Example:
        >>> best_threshold(np.array([0.25, 0.5, 0.75]), np.array([0, 1, 1]))
        0.375
    """
    values, codes = np.unique(np.asarray(cosine, dtype=np.float64), return_inverse=True)
    if len(values) < 2:
        raise ValueError(f"expected two distinct cosines, got {len(values)}")
    positives = np.bincount(codes, weights=y == 1)
    negatives = np.bincount(codes, weights=y != 1)
    correct = np.cumsum(negatives)[:-1] + positives.sum() - np.cumsum(positives)[:-1]
    best = int(np.argmax(correct))  # the first of equals
    return float((values[best] + values[best + 1]) / 2)


def score_sts(
    validation_cosine: Vector,
    validation_gold: Vector,
    test_cosine: Vector,
    test_gold: Vector,
    *,
    model: str,
) -> FamilyScores:
    """Score the cosines of sentence pairs against graded similarity.

    Args:
        validation_cosine: ``(N_validation,)``.
        validation_gold: Human similarity, ``(N_validation,)``.
        test_cosine: ``(N_test,)``.
        test_gold: Human similarity, ``(N_test,)``.
        model: Who made the embeddings, for errors.

    Returns:
        ``spearman`` (main) and ``pearson``.

    Raises:
        DataError: Cosines are not finite or all equal, or the gold scores are all equal.
    """
    judged = {"validation": (validation_cosine, validation_gold), "test": (test_cosine, test_gold)}
    for split, (cosine, gold) in judged.items():
        check_cosines(cosine, model, "spearman")
        check_gold(gold, split, model, "spearman")
    metrics = {
        "spearman": main_metric("sts", test_gold, test_cosine),
        "pearson": float(np.corrcoef(test_cosine, test_gold)[0, 1]),
    }
    validation = main_metric("sts", validation_gold, validation_cosine)
    return FamilyScores(
        metrics, "spearman", validation, predictions_table(test_gold, test_cosine), {}
    )


def predictions_table(gold: Vector, predicted: Vector) -> pd.DataFrame:
    """Return one row for each test item, as :class:`FamilyScores` keeps them."""
    return pd.DataFrame({"gold": gold, "predicted": predicted})
