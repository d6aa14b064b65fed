"""What both transport solvers share: which texts they may be given, and how a plan is judged.

Shapes: B batch, S and R student and teacher length.
"""

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from emo.losses.shapes import require_shapes

TOLERANCE: Final = 1e-5
"""Marginal error within which a text counts as converged."""


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


@dataclass(frozen=True, slots=True)
class Problem:
    """A batch that a solver can read whole: every number finite, every text with mass.

    Attributes:
        cost: (B, S, R), 0 in padding and in texts that were set aside.
        student_mass: (B, S), all mass on the first token in texts that were set aside.
        teacher_mass: (B, R), the same.
        empty: (B,) bool, set aside for want of mass on one side.
        malformed: (B,) bool, set aside for a cost or mass that is not finite or a negative mass.
    """

    cost: Tensor
    student_mass: Tensor
    teacher_mass: Tensor
    empty: Tensor
    malformed: Tensor


def set_aside(cost: Tensor, student_mass: Tensor, teacher_mass: Tensor) -> Problem:
    """Replace texts that no solver can move by a trivial problem, and padding by cost 0.

    Args:
        cost: (B, S, R).
        student_mass: (B, S), 0 at padding.
        teacher_mass: (B, R), 0 at padding.

    Returns:
        The problem; gradients flow through it to sound texts only.

    Raises:
        ValueError: Shapes disagree.

    Example:
        >>> cost = torch.full((1, 1, 2), torch.nan)
        >>> problem = set_aside(cost, torch.ones(1, 1), torch.tensor([[0.5, 0.5]]))
        >>> problem.malformed.tolist(), problem.cost.tolist(), problem.teacher_mass.tolist()
        ([True], [[[0.0, 0.0]]], [[1.0, 0.0]])
    """
    require_shapes(
        cost=(cost, "B S R"), student_mass=(student_mass, "B S"), teacher_mass=(teacher_mass, "B R")
    )
    cells = (student_mass > 0)[:, :, None] & (teacher_mass > 0)[:, None, :]
    cost = cost.masked_fill(~cells, 0.0)
    masses = torch.cat([student_mass, teacher_mass], dim=1)
    sound = ((masses >= 0) & masses.isfinite()).all(dim=1) & cost.isfinite().all(dim=2).all(dim=1)
    empty = ~cells.any(dim=(1, 2)) & sound
    aside = (empty | ~sound)[:, None]
    return Problem(
        cost=cost.masked_fill(aside[:, :, None], 0.0),
        student_mass=_first_token_where(aside, student_mass),
        teacher_mass=_first_token_where(aside, teacher_mass),
        empty=empty,
        malformed=~sound,
    )


def judge(problem: Problem, plan: Tensor, tolerance: float = TOLERANCE) -> TransportLoss:
    """Compute the loss of a plan and how far it is from its marginals.

    Args:
        problem: What was solved.
        plan: (B, S, R). The loss has the gradients of the plan, if it has any, and of the cost.
        tolerance: Marginal error within which a text has converged.

    Returns:
        Loss, plan and marginal errors per text.

    Example:
        >>> one = torch.ones(1, 1)
        >>> problem = set_aside(torch.full((1, 1, 1), 0.25), one, one)
        >>> result = judge(problem, torch.full((1, 1, 1), 0.5))
        >>> result.loss.item(), result.error.item(), result.converged.item()
        (0.125, 0.5, False)
    """
    plan = plan.masked_fill((problem.empty | problem.malformed)[:, None, None], 0.0)
    fixed = plan.detach()
    error = torch.maximum(
        (fixed.sum(dim=2) - problem.student_mass.detach()).abs().amax(dim=1),
        (fixed.sum(dim=1) - problem.teacher_mass.detach()).abs().amax(dim=1),
    )
    error = error.masked_fill(problem.empty, 0.0).masked_fill(problem.malformed, torch.inf)
    return TransportLoss(
        loss=(plan * problem.cost).sum(dim=(1, 2)),
        plan=fixed,
        error=error,
        converged=error <= tolerance,
        empty=problem.empty,
    )


def require_positive(**values: float) -> None:
    """Check that named numbers are positive.

    Args:
        values: Name to number.

    Raises:
        ValueError: A number is not positive.

    Example:
        >>> require_positive(rounds=0)
        Traceback (most recent call last):
        ...
        ValueError: rounds must be positive, got 0
    """
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value}")


def _first_token_where(aside: Tensor, mass: Tensor) -> Tensor:
    # With no cost, that is solved in the first round.
    trivial = torch.zeros_like(mass)
    trivial[:, 0] = 1.0
    return torch.where(aside, trivial, mass)
