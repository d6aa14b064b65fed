"""CKA loss as the authors ran it (method-evidence 1.3).

Shapes: k layers, B texts, m rows, S and R student and teacher length.
"""

from typing import Final

import torch
from torch import Tensor

from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_masks, require_shapes

NORM_OFFSET: Final = 1e-8
"""Added to both Gram norms under the root, as in the authors' code."""

PUBLISHED_BATCH: Final = 4
"""The authors' largest batch per device, at which a sum over texts has the published weight."""


@in_full_precision
def paper_cka_loss(
    student_rows: Tensor, teacher_rows: Tensor, row_mask: Tensor, batch_scale: bool
) -> Tensor:
    """Sum the paper's CKA loss over texts and layers, in float64.

    Formula:
        L = Σ_layers Σ_texts 1 - ‖SᵀT‖_F / sqrt((‖SᵀS‖_F + 1e-8) (‖TᵀT‖_F + 1e-8))

    with S and T column-centred over the rows of the text: one minus the *root* of the usual
    linear CKA. Computed from the m x m Gram matrices K = SSᵀ and L = TTᵀ, since ‖SᵀT‖_F² = <K, L>
    and ‖SᵀS‖_F = ‖K‖_F. A text with one row or none adds exactly 1 and no gradient.

    Args:
        student_rows: (k, B, m, S) head means of the selected query rows.
        teacher_rows: (k, B, m, R).
        row_mask: (B, m) bool, rows that exist; the same for all layers.
        batch_scale: Multiply by 4/B, so that a sum over any batch weighs what it weighed in the
            authors' batches of at most four texts.

    Returns:
        Scalar, in the precision of the inputs (float32 at least).

    Raises:
        ValueError: Shapes disagree or the mask is not boolean.

    Example:
        >>> rows = torch.tensor([[[[0.7, 0.3], [0.2, 0.8]], [[1.0, 0.0], [0.0, 0.0]]]])
        >>> mask = torch.tensor([[True, True], [True, False]])
        >>> round(paper_cka_loss(rows, rows, mask, batch_scale=False).item(), 5)
        1.0
    """
    require_shapes(
        student_rows=(student_rows, "k B m S"),
        teacher_rows=(teacher_rows, "k B m R"),
        row_mask=(row_mask, "B m"),
    )
    require_masks(row_mask=row_mask)
    student_gram = _gram(student_rows.double(), row_mask)
    teacher_gram = _gram(teacher_rows.double(), row_mask)
    cross = _root((student_gram * teacher_gram).sum(dim=(2, 3)))
    student_norm = torch.linalg.matrix_norm(student_gram) + NORM_OFFSET
    teacher_norm = torch.linalg.matrix_norm(teacher_gram) + NORM_OFFSET
    total: Tensor = (1.0 - cross / (student_norm * teacher_norm).sqrt()).sum()
    scale = PUBLISHED_BATCH / row_mask.shape[0] if batch_scale else 1.0
    return (scale * total).to(student_rows.dtype)


def _gram(rows: Tensor, row_mask: Tensor) -> Tensor:
    present = row_mask[None, :, :, None]
    rows = rows.masked_fill(~present, 0.0)
    count = present.sum(dim=2, keepdim=True).clamp(min=1)
    centred = (rows - rows.sum(dim=2, keepdim=True) / count).masked_fill(~present, 0.0)
    return centred @ centred.mT


def _root(square: Tensor) -> Tensor:
    # <K, L> is 0 for a text with a single row, and the root has no finite gradient there.
    positive = square > 0
    return torch.where(positive, square, 1.0).sqrt().masked_fill(~positive, 0.0)
