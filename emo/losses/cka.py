"""Linear CKA between attention rows of student and teacher (repaired form).

Shapes: B texts (or texts times layers), m rows, S and R student and teacher length. Row i of both
sides belongs to the same mapped token pair. Columns of padded keys must be zero on both sides,
as a masked softmax leaves them; then they change nothing.
"""

from typing import Final, Literal

import torch
from torch import Tensor

from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_masks, require_shapes

TextEstimator = Literal["biased", "debiased"]

FEWEST_ROWS: Final[dict[TextEstimator, int]] = {"biased": 2, "debiased": 4}
"""Fewest rows of a text for which an estimator of HSIC is defined."""

CONSTANT_ROWS: Final = 16.0
"""Rows whose centred norm is below this many float epsilons of their norm count as constant:
what is left of them is rounding, and scaling it up would invent a similarity."""

VANISHED_GRAM: Final = 32.0
"""The same for a debiased Gram matrix, in float epsilons of the trace of the biased one."""


@in_full_precision
def cka(
    student_rows: Tensor, teacher_rows: Tensor, row_mask: Tensor, estimator: TextEstimator
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
        (B,) CKA; 0 without gradient for a text with fewer than `FEWEST_ROWS`, with constant rows
        or, debiased, with equidistant rows, for which CKA is 0/0.

    Raises:
        ValueError: Shapes disagree, the mask is not boolean or the estimator is unknown.

    Example:
        >>> rows = torch.tensor([[[0.7, 0.3], [0.2, 0.8], [0.5, 0.5], [0.9, 0.1]]])
        >>> mask = torch.ones(1, 4, dtype=torch.bool)
        >>> round(cka(rows, 2 * rows.flip(2), mask, "debiased").item(), 5)
        1.0
    """
    require_shapes(
        student_rows=(student_rows, "B m S"),
        teacher_rows=(teacher_rows, "B m R"),
        row_mask=(row_mask, "B m"),
    )
    require_masks(row_mask=row_mask)
    if estimator not in FEWEST_ROWS:
        raise ValueError(f"estimator is {estimator!r}, expected one of {sorted(FEWEST_ROWS)}")
    student_scaled = _scaled(student_rows, row_mask, (1, 2))
    teacher_scaled = _scaled(teacher_rows, row_mask, (1, 2))
    student_gram = _unit(_centred_gram(student_scaled, row_mask, estimator))
    teacher_gram = _unit(_centred_gram(teacher_scaled, row_mask, estimator))
    return (student_gram * teacher_gram).sum(dim=(1, 2))


@in_full_precision
def pooled_cka(student_rows: Tensor, teacher_rows: Tensor, row_mask: Tensor) -> Tensor:
    """Compare the rows of a whole batch by one CKA, from HSIC values added up over its texts.

    Formula (the minibatch form of Nguyen et al. 2021, with a text as the minibatch):
        CKA = Σ HSIC_1(K, L) / sqrt(Σ HSIC_1(K, K) Σ HSIC_1(L, L)), sums over texts with enough rows

    The few rows of one text no longer divide by their own noise, and texts with more varied rows
    weigh more. Rows are still centred within their text, as they are softmax rows over its keys.

    Args:
        student_rows: (k, B, m, S), k layers.
        teacher_rows: (k, B, m, R).
        row_mask: (B, m) bool, rows that exist; the same for all layers.

    Returns:
        (k,) CKA; 0 without gradient for a layer that has no text with `FEWEST_ROWS` rows.

    Raises:
        ValueError: Shapes disagree or the mask is not boolean.

    Example:
        >>> text = torch.tensor([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5], [0.9, 0.1]])
        >>> rows = text.expand(1, 2, 4, 2)
        >>> mask = torch.ones(2, 4, dtype=torch.bool)
        >>> [round(value, 5) for value in pooled_cka(rows, 2 * rows.flip(3), mask).tolist()]
        [1.0]
    """
    require_shapes(
        student_rows=(student_rows, "k B m S"),
        teacher_rows=(teacher_rows, "k B m R"),
        row_mask=(row_mask, "B m"),
    )
    require_masks(row_mask=row_mask)
    student_gram = _pooled_gram(student_rows, row_mask)
    teacher_gram = _pooled_gram(teacher_rows, row_mask)
    return (student_gram * teacher_gram).sum(dim=(1, 2))


def _pooled_gram(rows: Tensor, row_mask: Tensor) -> Tensor:
    layers, batch, most, _ = rows.shape
    count = row_mask.sum(dim=1)
    pairs = (count * (count - 3)).clamp(min=1).to(rows.dtype)
    scaled = _scaled(rows, row_mask.expand(layers, batch, most), (1, 2, 3)).flatten(0, 1)
    gram = _centred_gram(scaled, row_mask.repeat(layers, 1), "debiased")
    gram = gram / pairs.sqrt().repeat(layers)[:, None, None]
    # Seen as one long matrix, a layer is normalised by the root of its summed HSIC.
    return _unit(gram.reshape(layers, batch * most, most))


def _centre_columns(rows: Tensor, row_mask: Tensor) -> Tensor:
    present = row_mask[..., None]
    rows = rows.masked_fill(~present, 0.0)
    count = present.sum(dim=-2, keepdim=True).clamp(min=1)
    centred = (rows - rows.sum(dim=-2, keepdim=True) / count).masked_fill(~present, 0.0)
    noise = CONSTANT_ROWS * torch.finfo(rows.dtype).eps * _norm(rows, (-2, -1))
    return centred.masked_fill(_norm(centred, (-2, -1)) <= noise, 0.0)


def _norm(values: Tensor, dims: tuple[int, ...]) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(values.detach(), dim=dims, keepdim=True)
    return norm


def _scaled(rows: Tensor, row_mask: Tensor, dims: tuple[int, ...]) -> Tensor:
    # CKA does not change when a side is rescaled, so dividing by a detached norm leaves value and
    # gradient as they are and keeps fourth powers of small attention weights inside float32.
    centred = _centre_columns(rows, row_mask)
    scale = _norm(centred, dims)
    return centred / torch.where(scale > 0, scale, 1.0)


def _centred_gram(centred: Tensor, row_mask: Tensor, estimator: TextEstimator) -> Tensor:
    gram = centred @ centred.mT
    count = row_mask.sum(dim=1)[:, None, None]
    if estimator == "debiased":
        gram = _u_centre(gram, row_mask, count)
    return gram.masked_fill(count < FEWEST_ROWS[estimator], 0.0)


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
