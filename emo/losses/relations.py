"""Relations among the token states of a text, or of a batch, by linear CKA.

Shapes: B batch, S and R student and teacher length, D_s and D_t widths, P mapped token pairs of the
whole batch, m most pairs of a text.
"""

from typing import Literal

import torch
from torch import Tensor

from emo.losses.cka import FEWEST_ROWS, cka
from emo.losses.matched import PairLoss
from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_masks, require_shapes


@in_full_precision
def relation_loss(
    student: Tensor,
    teacher: Tensor,
    pairs: Tensor,
    student_mask: Tensor,
    teacher_mask: Tensor,
    estimator: Literal["debiased", "pooled"],
) -> PairLoss:
    """Compare how the states of mapped tokens lie to each other in both spaces.

    Formula:
        `debiased`  mean over texts of 1 - CKA(X_b, Y_b), texts with four pairs or more
        `pooled`    1 - CKA(X, Y) over the pairs of all texts at once
        CKA is the debiased one of `emo.losses.cka`, X and Y the states of the pairs row by row

    The widths may differ: only inner products within one space are compared, so that no map
    between the spaces is needed. Within a text, `debiased` sees what tells its tokens apart;
    `pooled` also sees what tells texts apart, and its hundreds of rows estimate CKA far better.

    Args:
        student: (B, S, D_s) states.
        teacher: (B, R, D_t) states.
        pairs: (P, 3) int64, rows (batch index, teacher position, student position), any order.
        student_mask: (B, S) bool, student tokens that count.
        teacher_mask: (B, R) bool, teacher tokens that count.
        estimator: "debiased" or "pooled".

    Returns:
        Loss and counts. With `pooled`, a text with any pair counts as used, unless the batch has
        fewer than four pairs.

    Raises:
        ValueError: Shapes disagree, a mask is not boolean, or the estimator is unknown.

    Example:
        >>> states = torch.tensor([[[0.0, 1.0], [1.0, 3.0], [2.0, 1.0], [5.0, 0.0]]])
        >>> mask = torch.ones(1, 4, dtype=torch.bool)
        >>> pairs = torch.tensor([[0, 3, 3], [0, 1, 1], [0, 2, 2], [0, 0, 0]])
        >>> loss = relation_loss(states, 2 * states.flip(2), pairs, mask, mask, "pooled").loss
        >>> abs(loss.item()) < 1e-6
        True
    """
    require_shapes(
        student=(student, "B S D_s"),
        teacher=(teacher, "B R D_t"),
        student_mask=(student_mask, "B S"),
        teacher_mask=(teacher_mask, "B R"),
    )
    require_masks(student_mask=student_mask, teacher_mask=teacher_mask)
    if estimator not in ("debiased", "pooled"):
        raise ValueError(f"estimator is {estimator!r}, expected 'debiased' or 'pooled'")
    text, teacher_position, student_position = pairs.unbind(dim=1)
    counted = student_mask[text, student_position] & teacher_mask[text, teacher_position]
    text, teacher_position, student_position = pairs[counted].unbind(dim=1)
    student_rows = student[text, student_position]
    teacher_rows = teacher[text, teacher_position]
    count = torch.bincount(text, minlength=student.shape[0])
    if estimator == "pooled":
        enough = (count > 0) & (len(text) >= FEWEST_ROWS["debiased"])
        group, size = torch.zeros_like(text), count.sum()[None]
    else:
        enough = count >= FEWEST_ROWS["debiased"]
        group, size = text, count
    row_mask = torch.arange(max(1, int(size.max())), device=size.device) < size[:, None]
    places = _places(group, size)
    similarity = cka(
        _packed(student_rows, places, row_mask),
        _packed(teacher_rows, places, row_mask),
        row_mask,
        "debiased",
    )
    used = size >= FEWEST_ROWS["debiased"]
    loss = (1.0 - similarity).masked_fill(~used, 0.0).sum() / used.sum().clamp(min=1)
    return PairLoss(loss, enough.sum(), (~enough).sum())


def _places(group: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Return the group of each pair and its place there; groups are in any order."""
    order = torch.argsort(group, stable=True)
    start = size.cumsum(dim=0) - size
    place = torch.empty_like(group)
    place[order] = torch.arange(len(group), device=group.device) - start[group[order]]
    return group, place


def _packed(rows: Tensor, places: tuple[Tensor, Tensor], row_mask: Tensor) -> Tensor:
    """Put the rows of the pairs, ``(P, D)``, where each group has its own, padded with zeros."""
    return rows.new_zeros(*row_mask.shape, rows.shape[1]).index_put(places, rows)
