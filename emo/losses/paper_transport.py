"""Transport loss as the authors ran it.

Shapes: B batch, S and R student and teacher length.
"""

from typing import Final

import torch
from torch import Tensor

from emo.losses.plan import TransportLoss, judge, require_positive, set_aside
from emo.losses.precision import in_full_precision

DENOMINATOR_OFFSET: Final = 1e-9


@in_full_precision
def paper_transport_loss(
    cost: Tensor,
    student_mass: Tensor,
    teacher_mass: Tensor,
    epsilon: float = 0.1,
    rounds: int = 100,
) -> TransportLoss:
    """Run the published Sinkhorn loop and differentiate through all of its rounds.

    Formula:
        K = exp(-C / ε), u = 1, then `rounds` times
        v = b / (Kᵀ u + 1e-9), u = a / (K v + 1e-9);  P = diag(u) K diag(v),  L = <P, C>

    A loop of its own and not a library solver: the offset of 1e-9 is part of what was run. With
    costs up to 2 (cosine) K falls to 2e-9, and under near one-hot teacher masses the offset then
    moves the loss by some 1e-3; with the attention cost, at most 1, the two agree to 1e-5. The
    authors leave the loop when u moves by less than 1e-9; going on from there changes the loss by
    less than 1e-6, so a batch needs no test per text. In the exponential domain K underflows at a
    small ε; the text then comes back as not converged.

    Positions with zero mass are padding: their cost is never read. Empty and malformed texts are
    set aside as in `transport_loss`, where the authors' code would have stopped or spread NaN.

    Args:
        cost: (B, S, R).
        student_mass: (B, S). Gradients flow to both masses, too.
        teacher_mass: (B, R).
        epsilon: Smoothing, in units of the cost.
        rounds: Rounds of the loop, all of which are run.

    Returns:
        Loss, plan and marginal errors per text. The reduction is the caller's.

    Raises:
        ValueError: Shapes disagree, or epsilon or rounds is not positive.

    Example:
        >>> cost = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])
        >>> mass = torch.tensor([[0.5, 0.5]])
        >>> result = paper_transport_loss(cost, mass, mass)
        >>> round(result.loss.item(), 6), result.converged.item()
        (4.5e-05, True)
    """
    require_positive(epsilon=epsilon, rounds=rounds)
    problem = set_aside(cost, student_mass, teacher_mass)
    kernel = torch.exp(-problem.cost / epsilon)
    student_scaling = (problem.student_mass != 0).to(kernel.dtype)
    teacher_scaling = torch.zeros_like(problem.teacher_mass)
    for _ in range(rounds):
        # Products and sums, not matrix products, which a GPU may round to TF32.
        received = (kernel * student_scaling[:, :, None]).sum(dim=1)
        teacher_scaling = problem.teacher_mass / (received + DENOMINATOR_OFFSET)
        sent = (kernel * teacher_scaling[:, None, :]).sum(dim=2)
        student_scaling = problem.student_mass / (sent + DENOMINATOR_OFFSET)
    plan = student_scaling[:, :, None] * kernel * teacher_scaling[:, None, :]
    return judge(problem, plan)
