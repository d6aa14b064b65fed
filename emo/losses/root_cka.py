"""CKA between attention rows as the authors ran it.

Shapes: B texts (or texts times layers), m rows, S and R student and teacher length.
"""

from typing import Final

import torch
from torch import Tensor

from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_masks, require_shapes

NORM_OFFSET: Final = 1e-8
"""Added to both Gram norms under the root, as in the authors' code."""


@in_full_precision
def root_cka(student_rows: Tensor, teacher_rows: Tensor, row_mask: Tensor) -> Tensor:
    """Compare two sets of rows by the root of linear CKA, text by text, in float64.

    Formula:
        ‖SᵀT‖_F / sqrt((‖SᵀS‖_F + 1e-8) (‖TᵀT‖_F + 1e-8))

    with S and T column-centred over the rows of the text: the *root* of the usual linear CKA.
    Computed from the m x m Gram matrices K = SSᵀ and L = TTᵀ, since ‖SᵀT‖_F² = <K, L> and
    ‖SᵀS‖_F = ‖K‖_F. On few rows it is near 1 even for unrelated ones.

    Args:
        student_rows: (B, m, S) head means of the selected query rows.
        teacher_rows: (B, m, R).
        row_mask: (B, m) bool, rows that exist.

    Returns:
        (B,) in the precision of the inputs (float32 at least); exactly 0 without gradient for a
        text with one row or none.

    Raises:
        ValueError: Shapes disagree or the mask is not boolean.

    Example:
        >>> rows = torch.tensor([[[0.7, 0.3], [0.2, 0.8]], [[1.0, 0.0], [0.0, 0.0]]])
        >>> mask = torch.tensor([[True, True], [True, False]])
        >>> [round(value, 5) for value in root_cka(rows, rows, mask).tolist()]
        [1.0, 0.0]
    """
    require_shapes(
        student_rows=(student_rows, "B m S"),
        teacher_rows=(teacher_rows, "B m R"),
        row_mask=(row_mask, "B m"),
    )
    require_masks(row_mask=row_mask)
    student_gram = _gram(student_rows.double(), row_mask)
    teacher_gram = _gram(teacher_rows.double(), row_mask)
    cross = _root((student_gram * teacher_gram).sum(dim=(1, 2)))
    student_norm = torch.linalg.matrix_norm(student_gram) + NORM_OFFSET
    teacher_norm = torch.linalg.matrix_norm(teacher_gram) + NORM_OFFSET
    similarity: Tensor = cross / (student_norm * teacher_norm).sqrt()
    return similarity.to(student_rows.dtype)


def _gram(rows: Tensor, row_mask: Tensor) -> Tensor:
    present = row_mask[:, :, None]
    rows = rows.masked_fill(~present, 0.0)
    count = present.sum(dim=1, keepdim=True).clamp(min=1)
    centred = (rows - rows.sum(dim=1, keepdim=True) / count).masked_fill(~present, 0.0)
    return centred @ centred.mT


def _root(square: Tensor) -> Tensor:
    # <K, L> is 0 for a text with a single row, and the root has no finite gradient there.
    positive = square > 0
    return torch.where(positive, square, 1.0).sqrt().masked_fill(~positive, 0.0)
