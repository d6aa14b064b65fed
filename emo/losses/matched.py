"""Losses on the states of mapped token pairs, one student token against one teacher token.

Shapes: B batch, S and R student and teacher length, D (or D_s and D_t) width, P mapped token pairs
of the whole batch.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from emo.losses.cosine import unit_vectors
from emo.losses.importance import pair_shares
from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_shapes


@dataclass(frozen=True, slots=True)
class PairLoss:
    """Loss of a batch's mapped pairs.

    Attributes:
        loss: Scalar; 0 with a graph without any text that counts.
        texts_used: Integer scalar tensor, texts with enough pairs.
        texts_skipped: Integer scalar tensor, the other texts. They carry no gradient.
    """

    loss: Tensor
    texts_used: Tensor
    texts_skipped: Tensor


@in_full_precision
def matched_loss(
    student: Tensor, teacher: Tensor, pairs: Tensor, teacher_mass: Tensor, student_mask: Tensor
) -> PairLoss:
    """Average one minus the cosine of mapped tokens, weighted by the teacher's masses.

    Formula:
        L = mean over texts of (sum over pairs of w_ji (1 - cos(h_i, t_j))) / (sum over pairs of w)

    The weights are those of `pair_shares`, so that a pair weighs what transport would carry along
    it. A text counts as much as any other, however much of its mass is mapped; texts without
    mapped mass are left out. States that no weighted pair points at are never read.

    Args:
        student: (B, S, D) states, centred by the caller.
        teacher: (B, R, D) states in the same space, likewise.
        pairs: (P, 3) int64, rows (batch index, teacher position, student position), any order.
        teacher_mass: (B, R) masses.
        student_mask: (B, S) bool, student tokens that count.

    Returns:
        Loss and counts.

    Raises:
        ValueError: Shapes disagree, the mask is not boolean, or pairs are not int64.

    Example:
        >>> student = torch.tensor([[[2.0, 0.0], [0.0, 1.0]]])
        >>> teacher = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
        >>> pairs = torch.tensor([[0, 0, 0], [0, 1, 1]])
        >>> mass, mask = torch.tensor([[0.75, 0.25]]), torch.tensor([[True, True]])
        >>> matched_loss(student, teacher, pairs, mass, mask).loss.item()
        0.25
    """
    require_shapes(
        student=(student, "B S D"),
        teacher=(teacher, "B R D"),
        teacher_mass=(teacher_mass, "B R"),
        student_mask=(student_mask, "B S"),
    )
    share = pair_shares(teacher_mass, pairs, student_mask)
    weighted = share > 0
    share = share[weighted]
    text, teacher_position, student_position = pairs[weighted].unbind(dim=1)
    ours = unit_vectors(student[text, student_position])
    theirs = unit_vectors(teacher[text, teacher_position])
    distance = 1.0 - (ours * theirs).sum(dim=1)
    nothing = share.new_zeros(student.shape[0])
    total = nothing.index_add(0, text, share)
    losses = nothing.index_add(0, text, share * distance) / torch.where(total > 0, total, 1.0)
    used = (total > 0).sum()
    return PairLoss(losses.sum() / used.clamp(min=1), used, (total <= 0).sum())
