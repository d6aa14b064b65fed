"""Task losses for labelled texts, as in the authors' code.

Shapes: B batch, C classes.
"""

from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_shapes

HIGHEST_SCORE: Final = 5.0
"""Similarity is annotated from 0 to 5."""


@in_full_precision
def class_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Compute the cross-entropy of the right classes.

    Formula:
        L = mean_b -log softmax(z_b)[y_b]

    Args:
        logits: (B, C).
        labels: (B,) int64, 0 to C - 1.

    Returns:
        Scalar.

    Raises:
        ValueError: Shapes disagree, labels are not int64, or one is no class. That includes -100,
            which torch would leave out of the mean.

    Example:
        >>> logits = torch.tensor([[0.0, 0.0], [2.0, 2.0]])
        >>> round(class_loss(logits, torch.tensor([0, 1])).item(), 4)
        0.6931
    """
    require_shapes(logits=(logits, "B C"), labels=(labels, "B"))
    if labels.dtype != torch.int64:
        raise ValueError(f"labels must be int64, got {labels.dtype}")
    require_range("labels", labels, 0, logits.shape[1] - 1)
    return functional.cross_entropy(logits, labels)


@in_full_precision
def score_loss(logits: Tensor, scores: Tensor) -> Tensor:
    """Compute the squared error of predicted similarity scores.

    Formula:
        L = mean_b (5 sigmoid(z_b) - y_b)²

    Args:
        logits: (B,).
        scores: (B,) annotated scores, 0 to 5.

    Returns:
        Scalar.

    Raises:
        ValueError: Shapes disagree, or a score is not a number from 0 to 5.

    Example:
        >>> score_loss(torch.tensor([0.0, 0.0]), torch.tensor([2.5, 0.5])).item()
        2.0
    """
    require_shapes(logits=(logits, "B"), scores=(scores, "B"))
    require_range("scores", scores, 0, HIGHEST_SCORE)
    return (scores_of(logits) - scores).square().mean()


def scores_of(logits: Tensor) -> Tensor:
    """Return the scores from 0 to 5 that logits stand for.

    >>> scores_of(torch.tensor([0.0])).item()
    2.5
    """
    return HIGHEST_SCORE * logits.sigmoid()


def require_range(name: str, values: Tensor, lowest: float, highest: float) -> None:
    """Check that every value lies in a range.

    Raises:
        ValueError: One does not.
    """
    # The complement of inside and not outside, so that NaN is refused.
    outside = ~((values >= lowest) & (values <= highest))
    if outside.any():
        index = int(outside.nonzero()[0])
        raise ValueError(
            f"{name}[{index}] is {values[index].item()}, expected {lowest} to {highest:g}"
        )
