"""Costs of moving mass from a student token to a teacher token.

Shapes: B batch, S and R student and teacher length, D width of the space both states lie in. A
projection, on whichever side, and centring come before the cost. All three costs take (student,
teacher, student_mask, teacher_mask) and give 0 where either token is masked; states under the mask
are never read, so NaN in padding neither shows nor reaches a gradient.
"""

from math import sqrt

import torch
from torch import Tensor

from emo.losses.cosine import unit_vectors
from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_masks, require_shapes


@in_full_precision
def centred_states(states: Tensor, mask: Tensor, centre: Tensor | None) -> Tensor:
    """Take the centre off token states.

    Teacher spaces are anisotropic: without centring all tokens are close to each other and a
    plan has nothing to choose from.

    Args:
        states: (B, L, D).
        mask: (B, L) bool, tokens of which a mean is taken.
        centre: (D,), the same for every batch, such as a corpus mean; or None for the mean over
            the batch, which makes the cost of a text depend on its batch. The gradient runs
            through either.

    Returns:
        (B, L, D) states; 0 where the mask is False.

    Raises:
        ValueError: Shapes disagree or the mask is not boolean.

    Example:
        >>> states = torch.tensor([[[1.0, 5.0], [3.0, 7.0], [9.0, 9.0]]])
        >>> centred_states(states, torch.tensor([[True, True, False]]), None).tolist()
        [[[-1.0, -1.0], [1.0, 1.0], [0.0, 0.0]]]
    """
    require_shapes(states=(states, "B L D"), mask=(mask, "B L"))
    require_masks(mask=mask)
    hidden = ~mask[:, :, None]
    states = states.masked_fill(hidden, 0.0)
    if centre is None:
        centre = states.sum(dim=(0, 1)) / mask.sum().clamp(min=1)
    require_shapes(states=(states, "B L D"), centre=(centre, "D"))
    return (states - centre).masked_fill(hidden, 0.0)


@in_full_precision
def cosine_cost(
    student: Tensor,
    teacher: Tensor,
    student_mask: Tensor,
    teacher_mask: Tensor,
) -> Tensor:
    """Compute one minus the cosine between student and teacher token states (repaired form).

    Formula:
        C_ij = 1 - cos(h_i, t_j)

    Args:
        student: (B, S, D) states.
        teacher: (B, R, D) states, in the same space.
        student_mask: (B, S) bool.
        teacher_mask: (B, R) bool.

    Returns:
        (B, S, R) cost in [0, 2], zero where either token is masked.

    Raises:
        ValueError: Shapes disagree or a mask is not boolean.

    Example:
        >>> student = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
        >>> valid = torch.tensor([[True, True]])
        >>> cosine_cost(student, student, valid, valid).tolist()
        [[[0.0, 1.0], [1.0, 0.0]]]
    """
    student, teacher = _valid_states(student, teacher, student_mask, teacher_mask)
    cost = 1.0 - unit_vectors(student) @ unit_vectors(teacher).mT
    return _zero_padding(cost, student_mask, teacher_mask)


@in_full_precision
def euclidean_cost(
    student: Tensor,
    teacher: Tensor,
    student_mask: Tensor,
    teacher_mask: Tensor,
) -> Tensor:
    """Compute the Euclidean distance between student and teacher token states.

    Formula (the third cost that the authors coded):
        C_ij = ‖h_i - t_j‖

    It has the scale of the states, so the smoothing of a solver must follow that scale. The
    gradient at distance 0 is 0, where the derivative of a root is infinite. Differences are taken
    before they are squared: ‖h‖² + ‖t‖² - 2 <h, t> loses distances that are small beside the norms.

    Args:
        student: (B, S, D) states.
        teacher: (B, R, D) states, in the same space.
        student_mask: (B, S) bool.
        teacher_mask: (B, R) bool.

    Returns:
        (B, S, R) cost >= 0, zero where either token is masked.

    Raises:
        ValueError: Shapes disagree or a mask is not boolean.

    Example:
        >>> student = torch.tensor([[[3.0, 4.0], [0.0, 0.0]]])
        >>> valid = torch.tensor([[True, True]])
        >>> euclidean_cost(student, student, valid, valid).tolist()
        [[[0.0, 5.0], [5.0, 0.0]]]
    """
    student, teacher = _valid_states(student, teacher, student_mask, teacher_mask)
    cost = torch.cdist(student, teacher, compute_mode="donot_use_mm_for_euclid_dist")
    return _zero_padding(cost, student_mask, teacher_mask)


@in_full_precision
def attention_cost(
    student: Tensor, teacher: Tensor, student_mask: Tensor, teacher_mask: Tensor
) -> Tensor:
    """Compute one minus the attention of student tokens over teacher tokens (paper's form).

    Formula:
        C_ij = 1 - softmax over teacher tokens j of (<h_i, t_j> / sqrt(D))

    The authors project the teacher to the student's width; D is then that width.

    Args:
        student: (B, S, D) states.
        teacher: (B, R, D) states, in the same space.
        student_mask: (B, S) bool.
        teacher_mask: (B, R) bool, tokens that share the softmax.

    Returns:
        (B, S, R) cost in [0, 1], zero where either token is masked.

    Raises:
        ValueError: Shapes disagree or a mask is not boolean.

    Example:
        >>> states = torch.zeros(1, 2, 4)
        >>> valid = torch.tensor([[True, True]])
        >>> attention_cost(states, states, valid, valid).tolist()
        [[[0.5, 0.5], [0.5, 0.5]]]
    """
    student, teacher = _valid_states(student, teacher, student_mask, teacher_mask)
    scores = student @ teacher.mT / sqrt(student.shape[2])
    # The lowest finite number and not -inf: a text without teacher tokens must not become NaN.
    scores = scores.masked_fill(~teacher_mask[:, None, :], torch.finfo(scores.dtype).min)
    return _zero_padding(1.0 - scores.softmax(dim=2), student_mask, teacher_mask)


def _valid_states(
    student: Tensor, teacher: Tensor, student_mask: Tensor, teacher_mask: Tensor
) -> tuple[Tensor, Tensor]:
    require_shapes(
        student=(student, "B S D"),
        teacher=(teacher, "B R D"),
        student_mask=(student_mask, "B S"),
        teacher_mask=(teacher_mask, "B R"),
    )
    require_masks(student_mask=student_mask, teacher_mask=teacher_mask)
    return (
        student.masked_fill(~student_mask[:, :, None], 0.0),
        teacher.masked_fill(~teacher_mask[:, :, None], 0.0),
    )


def _zero_padding(cost: Tensor, student_mask: Tensor, teacher_mask: Tensor) -> Tensor:
    return cost.masked_fill(~(student_mask[:, :, None] & teacher_mask[:, None, :]), 0.0)
