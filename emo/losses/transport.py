"""Entropic optimal transport between student and teacher tokens (repaired form).

Shapes: B batch, S and R student and teacher length.
"""

from dataclasses import dataclass

import torch
from ot.batch import solve_batch
from torch import Tensor

from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_shapes


@dataclass(frozen=True, slots=True)
class TransportLoss:
    """Transport of a batch, text by text.

    Attributes:
        loss: (B,) transported cost, 0 for texts that were set aside.
        plan: (B, S, R) transport plan without gradient, 0 for texts that were set aside.
        error: (B,) largest violation of a marginal by the plan, 0 for empty texts and infinite
            for malformed ones.
        converged: (B,) bool, error within the tolerance. Empty texts count as converged,
            malformed ones do not.
        empty: (B,) bool, no mass on the student's or the teacher's side.
    """

    loss: Tensor
    plan: Tensor
    error: Tensor
    converged: Tensor
    empty: Tensor


@in_full_precision
def transport_loss(
    cost: Tensor,
    student_mass: Tensor,
    teacher_mass: Tensor,
    epsilon: float = 0.1,
    max_rounds: int = 100,
    tolerance: float = 1e-5,
) -> TransportLoss:
    """Move the student's mass to the teacher's at the least cost, with entropic smoothing.

    Formula:
        P* = argmin <P, C> + ε Σ P log P  with  P 1 = a,  Pᵀ 1 = b,  P >= 0
        L = <P*, C>, where the gradient flows through C only (envelope)

    Positions with zero mass are padding: their cost is never read and their plan is zero. A text
    without mass on one side is `empty`; one with a cost or mass that is not finite, or with a
    negative mass, is malformed. Both are replaced by a trivial problem before the solver, which
    would otherwise run all rounds for everybody, and get loss 0. The solver stops when the worst
    text is within the tolerance, so a text's loss depends on its batch, but only within it.

    Masses carry no gradient. A malformed text should also be masked out where its states came
    from, because the gradient of a NaN state is NaN even when the loss above it is 0.

    Args:
        cost: (B, S, R).
        student_mass: (B, S), adding up to the same total as `teacher_mass` in each text; if not,
            no plan has both marginals and the text comes back as not converged.
        teacher_mass: (B, R).
        epsilon: Smoothing, in units of the cost.
        max_rounds: Most rounds of the solver.
        tolerance: Marginal violation at which a text has converged. The solver looks at it every
            tenth round.

    Returns:
        Loss, plan and marginal errors per text. The reduction is the caller's.

    Raises:
        ValueError: Shapes disagree, or epsilon, max_rounds or tolerance is not positive.

    Example:
        >>> cost = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])
        >>> mass = torch.tensor([[0.5, 0.5]])
        >>> result = transport_loss(cost, mass, mass)
        >>> [round(value, 4) for value in result.plan.flatten().tolist()]
        [0.5, 0.0, 0.0, 0.5]
        >>> round(result.loss.item(), 4), result.converged.item()
        (0.0, True)
    """
    require_shapes(
        cost=(cost, "B S R"), student_mass=(student_mass, "B S"), teacher_mass=(teacher_mass, "B R")
    )
    for name, value in (("epsilon", epsilon), ("max_rounds", max_rounds), ("tolerance", tolerance)):
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value}")
    with torch.no_grad():
        cells = _cells(student_mass, teacher_mass)
        empty = ~cells.any(dim=(1, 2))
        malformed = _malformed(cost.masked_fill(~cells, 0.0), student_mass, teacher_mass)
        empty = empty & ~malformed
        aside = (empty | malformed)[:, None]
        plan = solve_batch(
            cost.masked_fill(~cells | aside[:, :, None], 0.0),
            reg=epsilon,
            a=_replace(student_mass, aside),
            b=_replace(teacher_mass, aside),
            max_iter=max_rounds,
            tol=tolerance,
            method="log_sinkhorn",
        ).plan.masked_fill(aside[:, :, None], 0.0)
        error = torch.maximum(
            (plan.sum(dim=2) - student_mass).abs().amax(dim=1),
            (plan.sum(dim=1) - teacher_mass).abs().amax(dim=1),
        )
        error = error.masked_fill(empty, 0.0).masked_fill(malformed, torch.inf)
    live = cost.masked_fill(~cells | aside[:, :, None], 0.0)
    return TransportLoss(
        loss=(plan * live).sum(dim=(1, 2)),
        plan=plan,
        error=error,
        converged=error <= tolerance,
        empty=empty,
    )


def _cells(student_mass: Tensor, teacher_mass: Tensor) -> Tensor:
    return (student_mass > 0)[:, :, None] & (teacher_mass > 0)[:, None, :]


def _malformed(cost: Tensor, student_mass: Tensor, teacher_mass: Tensor) -> Tensor:
    masses = torch.cat([student_mass, teacher_mass], dim=1)
    sound = (masses >= 0) & masses.isfinite()
    return ~(sound.all(dim=1) & cost.isfinite().all(dim=2).all(dim=1))


def _replace(mass: Tensor, aside: Tensor) -> Tensor:
    # All mass on one position and no cost: solved in the first round.
    trivial = torch.zeros_like(mass)
    trivial[:, 0] = 1.0
    return torch.where(aside, trivial, mass)
