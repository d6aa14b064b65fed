"""Losses on pooled text vectors.

Shapes: B batch, D (or D_s and D_t, student and teacher) width.
"""

import torch
from torch import Tensor

from emo.losses.cosine import unit_vectors
from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_shapes


@in_full_precision
def cosine_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """Average one minus the cosine of student and teacher vector over the texts.

    Formula:
        L = mean_b (1 - cos(s_b, t_b))

    Args:
        student: (B, D), already in the teacher's space.
        teacher: (B, D).

    Returns:
        Scalar in [0, 2].

    Raises:
        ValueError: Shapes disagree.

    Example:
        >>> student = torch.tensor([[2.0, 0.0], [1.0, 0.0]])
        >>> cosine_loss(student, torch.tensor([[1.0, 0.0], [0.0, 1.0]])).item()
        0.5
    """
    require_shapes(student=(student, "B D"), teacher=(teacher, "B D"))
    return (1.0 - (unit_vectors(student) * unit_vectors(teacher)).sum(dim=1)).mean()


@in_full_precision
def relational_loss(student: Tensor, teacher: Tensor) -> Tensor:
    """Compare how similar the texts of a batch are to each other in both spaces.

    Formula:
        L = mean over b != c of (cos(s_b, s_c) - cos(t_b, t_c))²

    The widths may differ: only similarities within one space are compared.

    Args:
        student: (B, D_s).
        teacher: (B, D_t).

    Returns:
        Scalar; 0 with a graph for a single text, which has nothing to be compared with.

    Raises:
        ValueError: Shapes disagree.

    Example:
        >>> student = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> relational_loss(student, torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])).item()
        1.0
    """
    require_shapes(student=(student, "B D_s"), teacher=(teacher, "B D_t"))
    student_unit, teacher_unit = unit_vectors(student), unit_vectors(teacher)
    difference = student_unit @ student_unit.mT - teacher_unit @ teacher_unit.mT
    batch = student.shape[0]
    diagonal = torch.eye(batch, dtype=torch.bool, device=student.device)
    return difference.masked_fill(diagonal, 0.0).square().sum() / max(batch * (batch - 1), 1)
