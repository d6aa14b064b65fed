"""The projection on the student's side, started where least squares puts it."""

import torch
from torch import Tensor, nn

RIDGE = 1e-4
"""Share of the mean variance added to the diagonal: keeps the solution stable for few texts."""


def fit_head(student: Tensor, teacher: Tensor) -> nn.Linear:
    """Fit a linear map with bias from student to teacher vectors by ridge least squares.

    A random head would drag a student that already has a space of its own through a random
    rotation first. The map is on the student's side, since one on the teacher's can shrink any
    loss by shrinking the target. It stays part of the student, which then lives in the teacher's
    space: vectors of the two can be compared.

    Formula:
        min over W, b of Σ ‖W s + b - t‖² + λ ‖W‖²

    Args:
        student: ``(N, D_s)`` pooled student states.
        teacher: ``(N, D_t)`` targets.

    Returns:
        The fitted layer, float32.

    Example:
        >>> points = torch.tensor([[0.0], [1.0], [2.0]])
        >>> head = fit_head(points, 2 * points + 1)
        >>> [round(value, 2) for value in (head.weight.item(), head.bias.item())]
        [2.0, 1.0]
    """
    student, teacher = student.double(), teacher.double()
    student_mean, teacher_mean = student.mean(dim=0), teacher.mean(dim=0)
    centred = student - student_mean
    gram = centred.T @ centred
    ridge = (
        RIDGE
        * gram.diagonal().mean()
        * torch.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
    )
    weight = torch.linalg.solve(gram + ridge, centred.T @ (teacher - teacher_mean))
    head = nn.Linear(student.shape[1], teacher.shape[1], device=student.device)
    with torch.no_grad():
        head.weight.copy_(weight.T)
        head.bias.copy_(teacher_mean - student_mean @ weight)
    return head
