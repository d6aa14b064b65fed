"""Entropic optimal transport between student and teacher tokens (repaired form).

Shapes: B batch, S and R student and teacher length.
"""

import torch
from ot.batch import solve_batch
from torch import Tensor

from emo.losses.plan import TOLERANCE, Problem, TransportLoss, judge, require_positive, set_aside
from emo.losses.precision import in_full_precision


@in_full_precision
def transport_loss(
    cost: Tensor,
    student_mass: Tensor,
    teacher_mass: Tensor,
    epsilon: float = 0.1,
    rounds: int = 100,
    tolerance: float = TOLERANCE,
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
        rounds: Most rounds of the solver.
        tolerance: Marginal violation at which a text has converged. The solver looks at it every
            tenth round.

    Returns:
        Loss, plan and marginal errors per text. The reduction is the caller's.

    Raises:
        ValueError: Shapes disagree, or epsilon, rounds or tolerance is not positive.

    Example:
        >>> cost = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])
        >>> mass = torch.tensor([[0.5, 0.5]])
        >>> result = transport_loss(cost, mass, mass)
        >>> [round(value, 4) for value in result.plan.flatten().tolist()]
        [0.5, 0.0, 0.0, 0.5]
        >>> round(result.loss.item(), 4), result.converged.item()
        (0.0, True)
    """
    require_positive(epsilon=epsilon, rounds=rounds, tolerance=tolerance)
    problem = set_aside(cost, student_mass, teacher_mass)
    plan = balanced_plan(problem, problem.cost, epsilon, rounds, tolerance)
    return judge(problem, plan, tolerance)


@torch.no_grad()
def balanced_plan(
    problem: Problem, cost: Tensor, epsilon: float, rounds: int, tolerance: float
) -> Tensor:
    """Return the entropic plan that meets both masses of a problem at a cost, (B, S, R)."""
    plan: Tensor = solve_batch(
        cost,
        reg=epsilon,
        a=problem.student_mass,
        b=problem.teacher_mass,
        max_iter=rounds,
        tol=tolerance,
        method="log_sinkhorn",
    ).plan
    return plan
