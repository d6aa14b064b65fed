"""Linear CKA between attention rows of student and teacher (repaired form).

Shapes: B texts (or texts times layers), m rows, S and R student and teacher length. Row i of both
sides belongs to the same mapped token pair. Columns of padded keys must be zero on both sides,
as a masked softmax leaves them; then they change nothing.
"""

from dataclasses import dataclass
from typing import Final, Literal

import torch
from torch import Tensor

from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_masks, require_shapes

Estimator = Literal["biased", "debiased"]

MINIMUM_ROWS: Final[dict[Estimator, int]] = {"biased": 2, "debiased": 4}
"""Fewest rows of a text for which an estimator is defined."""

CONSTANT_ROWS: Final = 16.0
"""Rows whose centred norm is below this many float epsilons of their norm count as constant:
what is left of them is rounding, and scaling it up would invent a similarity."""

VANISHED_GRAM: Final = 32.0
"""The same for a debiased Gram matrix, in float epsilons of the trace of the biased one."""


@dataclass(frozen=True, slots=True)
class CkaLoss:
    """CKA loss of a batch.

    Attributes:
        loss: Scalar.
        texts_used: Integer scalar tensor, texts with enough rows.
        texts_skipped: Integer scalar tensor, texts with fewer than `MINIMUM_ROWS`.
    """

    loss: Tensor
    texts_used: Tensor
    texts_skipped: Tensor


@in_full_precision
def cka(
    student_rows: Tensor, teacher_rows: Tensor, row_mask: Tensor, estimator: Estimator
) -> Tensor:
    """Compare two sets of rows by linear CKA, text by text.

    Formula:
        CKA = HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L)),  K = X Xᵀ, L = Y Yᵀ (m x m)

    `biased` takes HSIC = <K_c, L_c> with column-centred rows; on a few rows it is near 1 even for
    unrelated ones. `debiased` is HSIC_1 of Song et al. 2012, written as the inner product of
    U-centred Gram matrices, which equals it and keeps HSIC(K, K) >= 0; it lies in [-1, 1] and is
    near 0 for unrelated rows. Both are 1 for equal, rotated or rescaled rows.

    Args:
        student_rows: (B, m, S).
        teacher_rows: (B, m, R).
        row_mask: (B, m) bool, rows that exist.
        estimator: "biased" or "debiased".

    Returns:
        (B,) CKA; 0 without gradient for a text with fewer than `MINIMUM_ROWS`, with constant rows
        or, debiased, with equidistant rows, for which CKA is 0/0.

    Raises:
        ValueError: Shapes disagree, the mask is not boolean or the estimator is unknown.

    Example:
        >>> rows = torch.tensor([[[0.7, 0.3], [0.2, 0.8], [0.5, 0.5], [0.9, 0.1]]])
        >>> mask = torch.ones(1, 4, dtype=torch.bool)
        >>> round(cka(rows, 2 * rows.flip(2), mask, "debiased").item(), 5)
        1.0
    """
    _check_rows(student_rows, teacher_rows, row_mask, estimator)
    student_gram = _unit(_centred_gram(_scale_texts(student_rows, row_mask), row_mask, estimator))
    teacher_gram = _unit(_centred_gram(_scale_texts(teacher_rows, row_mask), row_mask, estimator))
    return (student_gram * teacher_gram).sum(dim=(1, 2))


@in_full_precision
def cka_loss(
    student_rows: Tensor, teacher_rows: Tensor, row_mask: Tensor, estimator: Estimator
) -> CkaLoss:
    """Average 1 - CKA over the texts that have enough rows.

    Formula:
        L = mean over texts with at least MINIMUM_ROWS rows of (1 - CKA)

    A text with enough but constant rows counts with loss 1 and no gradient. Several layers go
    in as one batch of B times k texts, so that the mean is over texts and layers.

    Args:
        student_rows: (B, m, S).
        teacher_rows: (B, m, R).
        row_mask: (B, m) bool, rows that exist.
        estimator: "biased" or "debiased".

    Returns:
        Loss and counts. Without any usable text the loss is 0 and still has a graph.

    Raises:
        ValueError: Shapes disagree, the mask is not boolean or the estimator is unknown.

    Example:
        >>> rows = torch.tensor([[[0.7, 0.3], [0.2, 0.8]], [[0.7, 0.3], [0.0, 0.0]]])
        >>> result = cka_loss(rows, rows, torch.tensor([[True, True], [True, False]]), "biased")
        >>> result.loss.abs().item() < 1e-6
        True
        >>> result.texts_used.item(), result.texts_skipped.item()
        (1, 1)
    """
    similarity = cka(student_rows, teacher_rows, row_mask, estimator)
    enough = row_mask.sum(dim=1) >= MINIMUM_ROWS[estimator]
    total = (1.0 - similarity).masked_fill(~enough, 0.0).sum()
    return _counted(total / enough.sum().clamp(min=1), enough)


@in_full_precision
def pooled_cka_loss(
    student_rows: Tensor, teacher_rows: Tensor, row_mask: Tensor, estimator: Estimator
) -> CkaLoss:
    """Compute 1 - CKA once, from HSIC values added up over the texts of the batch.

    Formula:
        L = 1 - Σ HSIC(K, L) / sqrt(Σ HSIC(K, K) Σ HSIC(L, L)), sums over usable texts,
        HSIC = <K_c, L_c> / (n - 1)² biased, <K_u, L_u> / (n (n - 3)) debiased, n rows of the text

    Texts with more varied rows weigh more, and the few rows of one text no longer divide by their
    own noise. Rows are still centred within their text, as they are softmax rows over its keys.
    No method uses it: it is offered to notebooks and to the ablation of the estimator.

    Args:
        student_rows: (B, m, S).
        teacher_rows: (B, m, R).
        row_mask: (B, m) bool, rows that exist.
        estimator: "biased" or "debiased".

    Returns:
        Loss and counts. Without any usable text the loss is 0 and still has a graph.

    Raises:
        ValueError: Shapes disagree, the mask is not boolean or the estimator is unknown.

    Example:
        >>> rows = torch.tensor([[[0.7, 0.3], [0.2, 0.8]], [[0.6, 0.4], [0.1, 0.9]]])
        >>> mask = torch.ones(2, 2, dtype=torch.bool)
        >>> pooled_cka_loss(rows, rows, mask, "biased").loss.abs().item() < 1e-6
        True
    """
    _check_rows(student_rows, teacher_rows, row_mask, estimator)
    count = row_mask.sum(dim=1)
    enough = count >= MINIMUM_ROWS[estimator]
    pairs = (count - 1) ** 2 if estimator == "biased" else count * (count - 3)
    root = pairs.clamp(min=1).to(student_rows.dtype).sqrt()[:, None, None]
    student_gram = _centred_gram(_scale_batch(student_rows, row_mask), row_mask, estimator) / root
    teacher_gram = _centred_gram(_scale_batch(teacher_rows, row_mask), row_mask, estimator) / root
    # Seen as one long matrix, the batch is normalised by the root of its summed HSIC.
    student_gram = _unit(student_gram.reshape(1, -1, row_mask.shape[1]))
    teacher_gram = _unit(teacher_gram.reshape(1, -1, row_mask.shape[1]))
    similarity = (student_gram * teacher_gram).sum()
    return _counted((1.0 - similarity).masked_fill(~enough.any(), 0.0), enough)


def _check_rows(
    student_rows: Tensor, teacher_rows: Tensor, row_mask: Tensor, estimator: Estimator
) -> None:
    require_shapes(
        student_rows=(student_rows, "B m S"),
        teacher_rows=(teacher_rows, "B m R"),
        row_mask=(row_mask, "B m"),
    )
    require_masks(row_mask=row_mask)
    if estimator not in MINIMUM_ROWS:
        raise ValueError(f"estimator is {estimator!r}, expected one of {sorted(MINIMUM_ROWS)}")


def _counted(loss: Tensor, enough: Tensor) -> CkaLoss:
    return CkaLoss(loss=loss, texts_used=enough.sum(), texts_skipped=(~enough).sum())


def _centre_columns(rows: Tensor, row_mask: Tensor) -> Tensor:
    present = row_mask[:, :, None]
    rows = rows.masked_fill(~present, 0.0)
    count = present.sum(dim=1, keepdim=True).clamp(min=1)
    centred = (rows - rows.sum(dim=1, keepdim=True) / count).masked_fill(~present, 0.0)
    noise = CONSTANT_ROWS * torch.finfo(rows.dtype).eps * _norm(rows, (1, 2))
    return centred.masked_fill(_norm(centred, (1, 2)) <= noise, 0.0)


def _norm(values: Tensor, dims: tuple[int, ...]) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(values.detach(), dim=dims, keepdim=True)
    return norm


# CKA does not change when a side is rescaled, so dividing by a detached norm leaves value and
# gradient as they are and keeps fourth powers of small attention weights inside float32.


def _scale_texts(rows: Tensor, row_mask: Tensor) -> Tensor:
    centred = _centre_columns(rows, row_mask)
    scale = _norm(centred, (1, 2))
    return centred / torch.where(scale > 0, scale, 1.0)


def _scale_batch(rows: Tensor, row_mask: Tensor) -> Tensor:
    centred = _centre_columns(rows, row_mask)
    scale = _norm(centred, (0, 1, 2))
    return centred / torch.where(scale > 0, scale, 1.0)


def _centred_gram(centred: Tensor, row_mask: Tensor, estimator: Estimator) -> Tensor:
    gram = centred @ centred.mT
    count = row_mask.sum(dim=1)[:, None, None]
    if estimator == "debiased":
        gram = _u_centre(gram, row_mask, count)
    return gram.masked_fill(count < MINIMUM_ROWS[estimator], 0.0)


def _u_centre(gram: Tensor, row_mask: Tensor, count: Tensor) -> Tensor:
    diagonal = torch.eye(gram.shape[1], dtype=torch.bool, device=gram.device)
    outside = diagonal | ~(row_mask[:, :, None] & row_mask[:, None, :])
    gram = gram.masked_fill(outside, 0.0)
    row_mean = gram.sum(dim=2, keepdim=True) / (count - 2).clamp(min=1)
    total_mean = gram.sum(dim=(1, 2), keepdim=True) / ((count - 1) * (count - 2)).clamp(min=1)
    return (gram - row_mean - row_mean.mT + total_mean).masked_fill(outside, 0.0)


def _unit(gram: Tensor) -> Tensor:
    square = gram.square().sum(dim=(1, 2), keepdim=True)
    vanished = square <= (VANISHED_GRAM * torch.finfo(gram.dtype).eps) ** 2
    # The root of a vanished square has no finite gradient, so it never enters the graph.
    return gram.masked_fill(vanished, 0.0) / torch.where(vanished, 1.0, square).sqrt()
