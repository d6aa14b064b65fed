"""Transport of token states: masses, costs and solvers as a method's settings choose them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from torch import Tensor

from emo.config_methods import TokenTerms
from emo.losses import (
    TransportLoss,
    attention_cost,
    cosine_cost,
    euclidean_cost,
    fused_transport_loss,
    paper_student_masses,
    paper_teacher_masses,
    paper_transport_loss,
    student_masses,
    teacher_masses,
    transport_loss,
    unbalanced_transport_loss,
)
from emo.methods.counted import Tokens

COSTS: Mapping[str, Callable[..., Tensor]] = MappingProxyType(
    {"cosine": cosine_cost, "euclidean": euclidean_cost, "attention": attention_cost}
)


def teacher_mass(settings: TokenTerms, importance: Tensor, tokens: Tokens) -> Tensor:
    """Return the teacher's masses, ``(B, R)``."""
    if settings.masses == "softmax":
        return paper_teacher_masses(importance, tokens.teacher_mask)
    return teacher_masses(importance, tokens.teacher_mask, settings.mass_power)


def student_mass(settings: TokenTerms, teacher_mass: Tensor, tokens: Tokens) -> Tensor:
    """Return the student's masses, ``(B, S)``, which follow from the teacher's."""
    if settings.masses == "softmax":
        return paper_student_masses(
            teacher_mass, tokens.teacher_mask, tokens.pairs, tokens.student_mask
        )
    return student_masses(teacher_mass, tokens.pairs, tokens.student_mask, settings.floor)


def transport(
    settings: TokenTerms, student: Tensor, teacher: Tensor, teacher_mass: Tensor, tokens: Tokens
) -> TransportLoss:
    """Move the student's masses to the teacher's.

    Args:
        settings: The method's part of the study.
        student: ``(B, S, D)`` states.
        teacher: ``(B, R, D)`` states in the same space.
        teacher_mass: ``(B, R)``.
        tokens: Tokens that count.
    """
    cost = COSTS[settings.cost](student, teacher, tokens.student_mask, tokens.teacher_mask)
    ours = student_mass(settings, teacher_mass, tokens)
    epsilon, rounds = settings.epsilon, settings.rounds
    match settings.solver:
        case "envelope":
            return transport_loss(cost, ours, teacher_mass, epsilon=epsilon, rounds=rounds)
        case "unrolled":
            return paper_transport_loss(cost, ours, teacher_mass, epsilon=epsilon, rounds=rounds)
        case "unbalanced":
            return unbalanced_transport_loss(
                cost,
                ours,
                teacher_mass,
                epsilon=epsilon,
                rounds=rounds,
                marginal=settings.marginal,
            )
        case "fused":
            return fused_transport_loss(
                cost,
                cosine_cost(student, student, tokens.student_mask, tokens.student_mask),
                cosine_cost(teacher, teacher, tokens.teacher_mask, tokens.teacher_mask),
                ours,
                teacher_mass,
                epsilon=epsilon,
                rounds=rounds,
                structure=settings.structure,
            )
