"""Scores of a head's own answers, family by family: arrays in, scores out.

classification  the likeliest class; macro-F1 (main), accuracy, macro precision and recall
pairs           how much likelier the label 1 is; average precision (main), and the above
sts             the score from 0 to 5; Spearman (main), Pearson

Main metrics are those of frozen embeddings in :mod:`emo.metrics`, so that both compare. Nothing is
chosen on the validation split: it is scored like the test split.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_fscore_support

from emo.config_methods import Family
from emo.errors import DataError
from emo.losses.task import HIGHEST_SCORE
from emo.metrics import FamilyScores, predictions_table
from emo.undefined_scores import check_gold
from emo.weighted_metrics import MAIN_METRICS, main_metric

Array = NDArray[Any]


def score_head(
    family: Family,
    labels: list[str],
    validation: tuple[Array, Array],
    test: tuple[Array, Array],
    *,
    model: str,
) -> FamilyScores:
    """Score what a head says of validation and test rows.

    Args:
        family: Family of the task.
        labels: Names of the classes, in the order of the logits; of pairs ``0`` and ``1``.
        validation: Logits ``(N, C)``, or of scores ``(N,)``, and gold labels or scores ``(N,)``.
        test: The same of the test rows.
        model: Who answered, for errors.

    Returns:
        The metrics of the test rows, and the main one of the validation rows.

    Raises:
        DataError: Logits are not finite; a ranking is asked of answers that are all equal; or the
            gold values of a ranking are.
    """
    main, _ = MAIN_METRICS[family]
    judged = {"validation": validation, "test": test}
    (validated, _), (metrics, predicted) = (
        _scored(family, labels, *rows, split, model) for split, rows in judged.items()
    )
    return FamilyScores(
        metrics, main, validated[main], predictions_table(test[1], predicted), choices={}
    )


def _scored(
    family: Family, labels: list[str], logits: Array, gold: Array, split: str, model: str
) -> tuple[dict[str, float], Array]:
    """Return metrics and predictions of the rows of a split."""
    main, _ = MAIN_METRICS[family]
    undefined = f"{main} of {model} is undefined"
    if not np.isfinite(logits).all():
        raise DataError(f"{undefined}: the head's answers to {split} rows are not all finite")
    logits = logits.astype(np.float64)
    if family == "classification":
        predicted = np.array(labels)[logits.argmax(axis=1)]
        return _class_metrics(gold, predicted), predicted
    # Probabilities would be equal where they round to 1.
    predicted = _scores(logits) if family == "sts" else logits[:, 1] - logits[:, 0]
    if np.ptp(predicted) == 0:
        raise DataError(f"{undefined}: the head gives one answer to all {len(gold)} {split} rows")
    check_gold(gold, split, model, main)
    metrics = {main: main_metric(family, gold, predicted)}
    if family == "sts":
        return metrics | {"pearson": float(np.corrcoef(predicted, gold)[0, 1])}, predicted
    return metrics | _class_metrics(gold, (predicted > 0).astype(int)), predicted


def _scores(logits: Array) -> Array:
    return np.asarray(HIGHEST_SCORE / (1 + np.exp(-logits)))


def _class_metrics(gold: Array, predicted: Array) -> dict[str, float]:
    """Return accuracy and the means over the classes that occur; a class never told counts 0."""
    precision, recall, _, _ = precision_recall_fscore_support(
        gold, predicted, average="macro", zero_division=0
    )
    return {
        "macro_f1": main_metric("classification", gold, predicted),
        "accuracy": float(np.mean(predicted == gold)),
        "macro_precision": float(precision),
        "macro_recall": float(recall),
    }
