"""Transport that also keeps what lies near each other near (fused Gromov-Wasserstein).

Shapes: B batch, S and R student and teacher length.
"""

from dataclasses import replace
from typing import Final

import torch
from torch import Tensor

from emo.losses.plan import TOLERANCE, TransportLoss, judge, require_positive, set_aside
from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_shapes
from emo.losses.transport import balanced_plan

STRUCTURE_ROUNDS: Final = 10
"""Times that the quadratic part is made linear at the last plan and solved again."""


@in_full_precision
def fused_transport_loss(
    cost: Tensor,
    student_structure: Tensor,
    teacher_structure: Tensor,
    student_mass: Tensor,
    teacher_mass: Tensor,
    epsilon: float = 0.1,
    rounds: int = 100,
    structure: float = 0.5,
    tolerance: float = TOLERANCE,
) -> TransportLoss:
    """Move mass where it is cheap and where distances within each side agree.

    Formula (entropic fused Gromov-Wasserstein with squared differences):
        F(P) = (1 - α) <P, C> + α Σ_ijkl (X_ik - Y_jl)² P_ij P_kl
        P* = argmin F(P) + ε Σ P log P  with  P 1 = a,  Pᵀ 1 = b,  P >= 0
        L = F(P*), where the gradient flows through C, X and Y (envelope)

    The minimum is approached as by `ot.gromov.entropic_fused_gromov_wasserstein`: from a bᵀ on, F
    is made linear at the last plan and solved by Sinkhorn's algorithm, here `STRUCTURE_ROUNDS`
    times for every text, so that none depends on its batch. The problem is not convex, and what is
    found is a stationary point. POT's own solver for batches gives NaN where a mass is 0, as it is
    in padding.

    Empty and malformed texts, padding, and masses without gradient are as in `transport_loss`.

    Args:
        cost: (B, S, R).
        student_structure: (B, S, S) symmetric distances X between the student's tokens.
        teacher_structure: (B, R, R) symmetric distances Y between the teacher's.
        student_mass: (B, S).
        teacher_mass: (B, R).
        epsilon: Smoothing, in units of the cost.
        rounds: Most rounds of each solution.
        structure: α, between 0 and 1.
        tolerance: Marginal error within which a text has converged, as has its plan if it moved by
            no more in the last of the solutions.

    Returns:
        Loss, plan and errors per text. The reduction is the caller's.

    Raises:
        ValueError: Shapes disagree, a number is not positive, or `structure` is 1 or more.

    Example:
        >>> mass = torch.tensor([[0.5, 0.3, 0.2]])
        >>> place = torch.tensor([[0.0, 1.0, 3.0]])
        >>> distance = (place[:, :, None] - place[:, None, :]).abs()
        >>> nothing = torch.zeros(1, 3, 3)
        >>> result = fused_transport_loss(nothing, distance, distance, mass, mass, 0.01)
        >>> [round(value, 2) for value in torch.diagonal(result.plan[0]).tolist()]
        [0.5, 0.3, 0.2]
    """
    require_positive(epsilon=epsilon, rounds=rounds, structure=structure, tolerance=tolerance)
    if structure >= 1:
        raise ValueError(f"structure must be below 1, got {structure}")
    require_shapes(
        cost=(cost, "B S R"),
        student_structure=(student_structure, "B S S"),
        teacher_structure=(teacher_structure, "B R R"),
    )
    ours, theirs = (
        _inside(student_structure, student_mass),
        _inside(teacher_structure, teacher_mass),
    )
    sound = ours.isfinite().all(dim=(1, 2)) & theirs.isfinite().all(dim=(1, 2))
    problem = set_aside(
        cost.masked_fill(~sound[:, None, None], torch.nan), student_mass, teacher_mass
    )
    aside = (problem.empty | problem.malformed)[:, None, None]
    ours, theirs = ours.masked_fill(aside, 0.0), theirs.masked_fill(aside, 0.0)
    with torch.no_grad():
        plan = problem.student_mass[:, :, None] * problem.teacher_mass[:, None, :]
        for _ in range(STRUCTURE_ROUNDS):
            before = plan
            slope = (1 - structure) * problem.cost + structure * _slope(ours, theirs, plan)
            plan = balanced_plan(problem, slope, epsilon, rounds, tolerance)
    result = judge(problem, plan, tolerance)
    plan = result.plan
    # Half of the slope along the plan, with the plan fixed: the quadratic part itself.
    quadratic = (plan * _slope(ours, theirs, plan)).sum(dim=(1, 2)) / 2
    moved = (plan - before).abs().amax(dim=(1, 2)).masked_fill(problem.empty, 0.0)
    error = torch.maximum(result.error, moved)
    return replace(
        result,
        loss=(1 - structure) * result.loss + structure * quadratic,
        error=error,
        converged=error <= tolerance,
    )


def _inside(distances: Tensor, mass: Tensor) -> Tensor:
    held = mass > 0
    return distances.masked_fill(~(held[:, :, None] & held[:, None, :]), 0.0)


def _slope(ours: Tensor, theirs: Tensor, plan: Tensor) -> Tensor:
    """Return the gradient of the quadratic part, (B, S, R), at a plan with its own marginals."""
    rows = ours.square() @ plan.sum(dim=2)[:, :, None]
    columns = theirs.square() @ plan.sum(dim=1)[:, :, None]
    return 2 * (rows + columns.mT - 2 * ours @ plan @ theirs.mT)
