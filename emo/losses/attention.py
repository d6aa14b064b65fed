"""Attention loss: an estimator of CKA between attention rows, and a reduction to one number.

Shapes: k layers, B texts, m rows, S and R student and teacher length.
"""

from dataclasses import dataclass
from typing import Final, Literal, get_args

import torch
from torch import Tensor

from emo.losses.cka import FEWEST_ROWS, cka, pooled_cka
from emo.losses.precision import in_full_precision
from emo.losses.root_cka import root_cka
from emo.losses.shapes import require_masks, require_shapes

Estimator = Literal["root", "biased", "debiased", "pooled"]
Reduction = Literal["sum", "sum-4", "mean"]

MINIMUM_ROWS: Final[dict[Estimator, int]] = {
    "root": 2,
    "biased": FEWEST_ROWS["biased"],
    "debiased": FEWEST_ROWS["debiased"],
    "pooled": FEWEST_ROWS["debiased"],
}
"""Fewest rows of a text for which an estimator is defined."""

PUBLISHED_BATCH: Final = 4
"""The authors' largest batch per device, at which a sum over texts has the published weight."""


@dataclass(frozen=True, slots=True)
class CkaLoss:
    """CKA loss of a batch.

    Attributes:
        loss: Scalar.
        texts_used: Integer scalar tensor, texts with enough rows; a text counts once, however many
            layers there are.
        texts_skipped: Integer scalar tensor, texts with fewer than `MINIMUM_ROWS`. They carry no
            gradient.
    """

    loss: Tensor
    texts_used: Tensor
    texts_skipped: Tensor


@in_full_precision
def attention_loss(
    student_rows: Tensor,
    teacher_rows: Tensor,
    row_mask: Tensor,
    estimator: Estimator,
    reduction: Reduction,
) -> CkaLoss:
    """Reduce 1 - CKA over the texts that have enough rows and over the layers.

    Formula:
        `mean`   mean over layers and texts of (1 - CKA)
        `sum`    sum over layers and texts of (1 - CKA)
        `sum-4`  4/B times the sum, so that a sum over any batch weighs what it weighed in the
                 authors' batches of at most four texts

    Estimators: `root` is the authors' root of CKA (`root_cka`), `biased` and `debiased` are
    text by text (`cka`), `pooled` is one value for all texts of a layer (`pooled_cka`), which
    stands for each of them: a sum multiplies it by the number of texts with enough rows.

    Texts with too few rows are left out, with one exception: a sum of `root` counts each of them
    with loss 1, as the authors' code does. They are reported as skipped all the same. A text with
    enough but constant rows has loss 1 and, but for `root`, no gradient.

    Args:
        student_rows: (k, B, m, S) head means of the selected query rows.
        teacher_rows: (k, B, m, R).
        row_mask: (B, m) bool, rows that exist; the same for all layers.
        estimator: "root", "biased", "debiased" or "pooled".
        reduction: "sum", "sum-4" or "mean".

    Returns:
        Loss and counts. Without any text that counts the loss is 0 and still has a graph.

    Raises:
        ValueError: Shapes disagree, the mask is not boolean, or the estimator or the reduction is
            unknown.

    Example:
        >>> rows = torch.tensor([[[[0.7, 0.3], [0.2, 0.8]], [[0.7, 0.3], [0.0, 0.0]]]])
        >>> mask = torch.tensor([[True, True], [True, False]])
        >>> result = attention_loss(rows, rows, mask, "biased", "mean")
        >>> result.loss.abs().item() < 1e-6
        True
        >>> result.texts_used.item(), result.texts_skipped.item()
        (1, 1)
        >>> round(attention_loss(rows, rows, mask, "root", "sum").loss.item(), 5)
        1.0
    """
    require_shapes(
        student_rows=(student_rows, "k B m S"),
        teacher_rows=(teacher_rows, "k B m R"),
        row_mask=(row_mask, "B m"),
    )
    require_masks(row_mask=row_mask)
    for name, value, known in (
        ("estimator", estimator, get_args(Estimator)),
        ("reduction", reduction, get_args(Reduction)),
    ):
        if value not in known:
            raise ValueError(f"{name} is {value!r}, expected one of {list(known)}")
    enough = row_mask.sum(dim=1) >= MINIMUM_ROWS[estimator]
    losses = 1.0 - _similarity(student_rows, teacher_rows, row_mask, estimator)
    counted = torch.ones_like(enough) if estimator == "root" and reduction != "mean" else enough
    return CkaLoss(
        loss=_reduce(losses, counted, reduction),
        texts_used=enough.sum(),
        texts_skipped=(~enough).sum(),
    )


def _similarity(
    student_rows: Tensor, teacher_rows: Tensor, row_mask: Tensor, estimator: Estimator
) -> Tensor:
    layers, batch = student_rows.shape[:2]
    if estimator == "pooled":
        return pooled_cka(student_rows, teacher_rows, row_mask)[:, None].expand(layers, batch)
    rows = student_rows.flatten(0, 1), teacher_rows.flatten(0, 1), row_mask.repeat(layers, 1)
    similarity = root_cka(*rows) if estimator == "root" else cka(*rows, estimator)
    return similarity.reshape(layers, batch)


def _reduce(losses: Tensor, counted: Tensor, reduction: Reduction) -> Tensor:
    layers, batch = losses.shape
    total = losses.masked_fill(~counted, 0.0).sum()
    if reduction == "mean":
        return total / (layers * counted.sum().clamp(min=1))
    return total * (PUBLISHED_BATCH / batch) if reduction == "sum-4" else total
