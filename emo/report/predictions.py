"""What a model answered to each test item, and how nearly two models answer alike."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from emo.errors import DataError
from emo.report.runs import Run, describe
from emo.weighted_metrics import main_metric

SAME_SCORE = 1e-6


def read_predictions(run: Run) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read the gold answers and those of a run, ``(N,)`` each.

    Raises:
        DataError: They are missing, or do not give the score that was reported.
    """
    try:
        table = pd.read_parquet(run.predictions, columns=["gold", "predicted"])
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{run.predictions}: no predictions ({error}); evaluate again") from error
    kind = str if run.family == "classification" else np.float64
    gold, predicted = (table[column].to_numpy(dtype=kind) for column in ("gold", "predicted"))
    if not len(gold) or abs(main_metric(run.family, gold, predicted) - run.score) > SAME_SCORE:
        raise DataError(
            f"{run.predictions} does not give the {run.main} {run.score} reported for "
            f"{describe(run)}; evaluate again"
        )
    return gold, predicted


def require_same_items(run: Run, other: Run) -> None:
    """Check that two runs were judged on the same test items.

    Raises:
        DataError: They were not.
    """
    if run.items != other.items:
        raise DataError(
            f"{describe(run)} and {describe(other)} were judged on different test items; "
            "evaluate both again"
        )


def fidelity(run: Run, teacher: Run) -> float:
    """Return how nearly a run answers as its teacher does, right or wrong.

    Of classes it is the share of test rows with the same answer (Stanton et al., 2021, "Does
    Knowledge Distillation Really Work?"), of pairs and scores Spearman's correlation of what the
    two say; NaN where one of them says the same of all rows.

    Args:
        run: A run.
        teacher: The teacher's on the same task.

    Raises:
        DataError: Predictions are missing or damaged, or of different test items.
    """
    require_same_items(run, teacher)
    (_, answers), (_, wanted) = read_predictions(run), read_predictions(teacher)
    if run.family == "classification":
        return float((answers == wanted).mean())
    return main_metric("sts", wanted, answers)
