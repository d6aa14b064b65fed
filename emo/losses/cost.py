"""Cost of moving mass from a student token to a teacher token.

Shapes: B batch, S and R student and teacher length, D width of the space both states lie in.
"""

from math import sqrt

import torch
from torch import Tensor

from emo.losses.cosine import unit_vectors
from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_masks, require_shapes


@in_full_precision
def cosine_cost(
    student: Tensor,
    teacher: Tensor,
    student_mask: Tensor,
    teacher_mask: Tensor,
    centre: bool = True,
    student_centre: Tensor | None = None,
    teacher_centre: Tensor | None = None,
) -> Tensor:
    """Compute one minus the cosine between student and teacher token states (repaired form).

    Formula:
        C_ij = 1 - cos(h_i - h̄, t_j - t̄), without h̄ and t̄ when `centre` is False

    Teacher spaces are anisotropic: without centring all tokens are close to each other and the
    plan has nothing to choose from. A centre that is not given is the mean over the valid tokens
    of the batch, and then the cost of a text depends on its batch; pass the corpus mean for a
    teacher, which does not move. The student does move, so its batch mean is the usual choice; the
    gradient runs through it.

    Args:
        student: (B, S, D) states, already in the teacher's space.
        teacher: (B, R, D) states.
        student_mask: (B, S) bool.
        teacher_mask: (B, R) bool.
        centre: Subtract centres.
        student_centre: (D,) or None for the batch mean.
        teacher_centre: (D,) or None for the batch mean.

    Returns:
        (B, S, R) cost in [0, 2], zero where either token is masked. States under the mask are
        never read, so NaN in padding neither shows nor reaches a gradient.

    Raises:
        ValueError: Shapes disagree, a mask is not boolean, or a centre comes with centre=False.

    Example:
        >>> student = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
        >>> valid = torch.tensor([[True, True]])
        >>> cosine_cost(student, student, valid, valid, centre=False).tolist()
        [[[0.0, 1.0], [1.0, 0.0]]]
    """
    _check_states(student, teacher, student_mask, teacher_mask)
    student = student.masked_fill(~student_mask[:, :, None], 0.0)
    teacher = teacher.masked_fill(~teacher_mask[:, :, None], 0.0)
    if centre:
        student = student - _centre_of(student, student_mask, student_centre, "student_centre")
        teacher = teacher - _centre_of(teacher, teacher_mask, teacher_centre, "teacher_centre")
    elif student_centre is not None or teacher_centre is not None:
        raise ValueError("student_centre and teacher_centre need centre=True, got centre=False")
    cost = 1.0 - unit_vectors(student) @ unit_vectors(teacher).mT
    return cost.masked_fill(~(student_mask[:, :, None] & teacher_mask[:, None, :]), 0.0)


@in_full_precision
def attention_cost(
    student: Tensor, projected_teacher: Tensor, student_mask: Tensor, teacher_mask: Tensor
) -> Tensor:
    """Compute one minus the attention of student tokens over teacher tokens (paper's form).

    Formula (method-evidence 1.4):
        C = 1 - softmax over teacher tokens of (H_s Pᵀ / sqrt(D))

    Args:
        student: (B, S, D) states of the student.
        projected_teacher: (B, R, D) teacher states, projected to the student's width.
        student_mask: (B, S) bool.
        teacher_mask: (B, R) bool, tokens that share the softmax.

    Returns:
        (B, S, R) cost in [0, 1], zero where either token is masked. States under the mask are
        never read.

    Raises:
        ValueError: Shapes disagree or a mask is not boolean.

    Example:
        >>> states = torch.zeros(1, 2, 4)
        >>> valid = torch.tensor([[True, True]])
        >>> attention_cost(states, states, valid, valid).tolist()
        [[[0.5, 0.5], [0.5, 0.5]]]
    """
    _check_states(student, projected_teacher, student_mask, teacher_mask, "projected_teacher")
    student = student.masked_fill(~student_mask[:, :, None], 0.0)
    projected_teacher = projected_teacher.masked_fill(~teacher_mask[:, :, None], 0.0)
    scores = student @ projected_teacher.mT / sqrt(student.shape[2])
    # The lowest finite number and not -inf: a text without teacher tokens must not become NaN.
    scores = scores.masked_fill(~teacher_mask[:, None, :], torch.finfo(scores.dtype).min)
    cost = 1.0 - scores.softmax(dim=2)
    return cost.masked_fill(~(student_mask[:, :, None] & teacher_mask[:, None, :]), 0.0)


def _check_states(
    student: Tensor,
    teacher: Tensor,
    student_mask: Tensor,
    teacher_mask: Tensor,
    teacher_name: str = "teacher",
) -> None:
    states = {"student": (student, "B S D"), teacher_name: (teacher, "B R D")}
    masks = {"student_mask": (student_mask, "B S"), "teacher_mask": (teacher_mask, "B R")}
    require_shapes(**states, **masks)
    require_masks(student_mask=student_mask, teacher_mask=teacher_mask)


def _centre_of(states: Tensor, mask: Tensor, centre: Tensor | None, name: str) -> Tensor:
    if centre is None:
        return states.sum(dim=(0, 1)) / mask.sum().clamp(min=1)
    require_shapes(states=(states, "B L D"), **{name: (centre, "D")})
    return centre
