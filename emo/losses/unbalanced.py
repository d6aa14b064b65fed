"""Entropic transport that need not move all mass.

Shapes: B batch, S and R student and teacher length.
"""

from dataclasses import replace

import torch
from torch import Tensor

from emo.losses.plan import TOLERANCE, Problem, TransportLoss, judge, require_positive, set_aside
from emo.losses.precision import in_full_precision

_LOOK_EVERY = 10
"""Rounds between looks at what still moves, as the balanced solver's."""


@in_full_precision
def unbalanced_transport_loss(
    cost: Tensor,
    student_mass: Tensor,
    teacher_mass: Tensor,
    epsilon: float = 0.1,
    rounds: int = 100,
    marginal: float = 1.0,
    tolerance: float = TOLERANCE,
) -> TransportLoss:
    """Move mass where it is cheap, and leave the rest where it is.

    Formula:
        P* = argmin <P, C> + ε KL(P | a bᵀ) + ρ KL(P 1 | a) + ρ KL(Pᵀ 1 | b),  P >= 0
        KL(x | y) = Σ x log(x / y) - x + y
        L = <P*, C>, where the gradient flows through C only (envelope)

    A token without a counterpart, such as one that the other tokenizer has cut otherwise, need not
    be moved to a stranger: mass whose cost is far above 2 ρ vanishes. With ρ growing this becomes
    `transport_loss`. The rounds are those of Sinkhorn's algorithm in the log domain with damped
    potentials, which is all that the relaxation changes.

    Empty and malformed texts, padding, and masses without gradient are as in `transport_loss`.

    Args:
        cost: (B, S, R).
        student_mass: (B, S).
        teacher_mass: (B, R).
        epsilon: Smoothing, in units of the cost.
        rounds: Most rounds.
        marginal: ρ, what missing one unit of mass costs, in units of the cost.
        tolerance: Change of a marginal in the last round within which a text has converged; looked
            at every tenth round.

    Returns:
        Loss and plan per text. `error` is not the violation of a marginal, which is wanted here,
        but its change in the last round.

    Raises:
        ValueError: Shapes disagree, or a number is not positive.

    Example:
        >>> cost = torch.tensor([[[0.0, 9.0], [9.0, 9.0]]])
        >>> mass = torch.tensor([[0.5, 0.5]])
        >>> plan = unbalanced_transport_loss(cost, mass, mass, marginal=0.5).plan
        >>> plan[0, 0, 0].item() > 0.4, plan[0, 1, 1].item() < 0.001
        (True, True)
    """
    require_positive(epsilon=epsilon, rounds=rounds, marginal=marginal, tolerance=tolerance)
    problem = set_aside(cost, student_mass, teacher_mass)
    with torch.no_grad():
        plan, moved = _solve(problem, epsilon, rounds, marginal, tolerance)
    result = judge(problem, plan)
    aside = problem.empty | problem.malformed
    error = moved.masked_fill(aside, 0.0).masked_fill(problem.malformed, torch.inf)
    return replace(result, error=error, converged=error <= tolerance)


def _solve(
    problem: Problem, epsilon: float, rounds: int, marginal: float, tolerance: float
) -> tuple[Tensor, Tensor]:
    """Return the plan, (B, S, R), and how far each text's marginals moved in the last round."""
    scores = -problem.cost / epsilon
    rows, columns = problem.student_mass.log()[:, :, None], problem.teacher_mass.log()[:, None, :]
    damping = marginal / (marginal + epsilon)
    ours, theirs = torch.zeros_like(rows), torch.zeros_like(columns)
    plan = (scores + rows + columns).exp()
    for number in range(1, rounds + 1):
        ours = -damping * (scores + theirs + columns).logsumexp(dim=2, keepdim=True)
        theirs = -damping * (scores + ours + rows).logsumexp(dim=1, keepdim=True)
        if number % _LOOK_EVERY in (_LOOK_EVERY - 1, 0) or number >= rounds - 1:
            before, plan = plan, (scores + ours + theirs + rows + columns).exp()
        if number % _LOOK_EVERY == 0 and (_moved(before, plan) <= tolerance).all():
            break
    return plan, _moved(before, plan)


def _moved(before: Tensor, after: Tensor) -> Tensor:
    change = after - before
    return torch.maximum(change.sum(dim=2).abs().amax(dim=1), change.sum(dim=1).abs().amax(dim=1))
