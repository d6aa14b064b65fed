"""Transport loss as the authors ran it (method-evidence 1.4).

Shapes: B batch, S and R student and teacher length.
"""

from typing import Final

import torch
from torch import Tensor

from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_shapes

EPSILON: Final = 0.1
ROUNDS: Final = 100
DENOMINATOR_OFFSET: Final = 1e-9


@in_full_precision
def paper_transport_loss(cost: Tensor, student_mass: Tensor, teacher_mass: Tensor) -> Tensor:
    """Run the published Sinkhorn loop and differentiate through all of its rounds.

    Formula:
        K = exp(-C / 0.1), u = 1, then 100 times
        v = b / (Kᵀ u + 1e-9), u = a / (K v + 1e-9);  P = diag(u) K diag(v),  L = <P, C>

    A loop of its own and not a library solver: the offset of 1e-9 is part of what was run. With
    costs up to 2 (cosine) K falls to 2e-9, and under near one-hot teacher masses the offset then
    moves the loss by some 1e-3; with the attention cost, at most 1, the two agree to 1e-5. The
    authors leave the loop when u moves by less than 1e-9; going on from there changes the loss by
    less than 1e-6, so a batch needs no test per text.

    Positions with zero mass are padding: their cost is never read. A text that is not finite
    gives a loss that is not finite, and leaves the others alone.

    Args:
        cost: (B, S, R).
        student_mass: (B, S).
        teacher_mass: (B, R).

    Returns:
        (B,) loss, 0 for a text without mass on one side. The reduction is the caller's.

    Raises:
        ValueError: Shapes disagree.

    Example:
        >>> cost = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])
        >>> mass = torch.tensor([[0.5, 0.5]])
        >>> round(paper_transport_loss(cost, mass, mass).item(), 6)
        4.5e-05
    """
    require_shapes(
        cost=(cost, "B S R"), student_mass=(student_mass, "B S"), teacher_mass=(teacher_mass, "B R")
    )
    padding = (student_mass == 0)[:, :, None] | (teacher_mass == 0)[:, None, :]
    cost = cost.masked_fill(padding, 0.0)
    kernel = torch.exp(-cost / EPSILON)
    student_scaling = (student_mass != 0).to(cost.dtype)
    teacher_scaling = torch.zeros_like(teacher_mass)
    for _ in range(ROUNDS):
        # Products and sums, not matrix products, which a GPU may round to TF32.
        received = (kernel * student_scaling[:, :, None]).sum(dim=1)
        teacher_scaling = teacher_mass / (received + DENOMINATOR_OFFSET)
        sent = (kernel * teacher_scaling[:, None, :]).sum(dim=2)
        student_scaling = student_mass / (sent + DENOMINATOR_OFFSET)
    plan = student_scaling[:, :, None] * kernel * teacher_scaling[:, None, :]
    return (plan * cost).sum(dim=(1, 2))
