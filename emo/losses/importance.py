"""How much each token matters, and the transport masses that follow from it.

Shapes: B batch, S and R student and teacher length, P mapped token pairs of the whole batch.
Masses are non-negative and add up to 1 per text, or are all zero for a text that cannot take
part; `emo.losses.transport.transport_loss` sets such texts aside and counts them.
"""

import torch
from torch import Tensor

from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_masks, require_shapes


@in_full_precision
def teacher_masses(importance: Tensor, mask: Tensor, power: float = 1.0) -> Tensor:
    """Turn teacher importance into masses by dividing by the total (repaired form).

    Formula:
        b_j = s_j^p / (sum over mask of s^p), 0 outside the mask

    Args:
        importance: (B, R), non-negative where `mask` is True.
        mask: (B, R) bool. A caller excludes a whole text with a row of False.
        power: p >= 0; above 1 it sharpens, below 1 it flattens, and 0 gives every token of the
            mask the same mass, whatever its importance.

    Returns:
        (B, R) masses. A text without importance (mask all False, or every importance 0 and p > 0)
        gets a row of zeros.

    Raises:
        ValueError: Shapes disagree, the mask is not boolean, or power < 0.

    Example:
        >>> teacher_masses(torch.tensor([[3.0, 1.0, 9.0]]), torch.tensor([[True, True, False]]))
        tensor([[0.7500, 0.2500, 0.0000]])
    """
    require_shapes(importance=(importance, "B R"), mask=(mask, "B R"))
    require_masks(mask=mask)
    if power < 0:
        raise ValueError(f"power must not be negative, got {power}")
    importance = importance.masked_fill(~mask, 0.0)
    if power != 1.0:
        # In units of the greatest, so that no power takes a whole text below the least float.
        greatest = importance.amax(dim=1, keepdim=True)
        relative = importance / torch.where(greatest > 0, greatest, 1.0)
        importance = relative.pow(power).masked_fill(~mask, 0.0)
    return _divide_by_total(importance)


@in_full_precision
def student_masses(
    teacher_mass: Tensor, pairs: Tensor, student_mask: Tensor, floor: float
) -> Tensor:
    """Carry teacher masses through the token map (repaired form).

    Formula:
        c_i = sum over teacher tokens j mapped to i of b_j / (number of pieces j is mapped to)
        a_i = (c_i if c_i > 0 else floor * mean of the positive c) / total

    Mass of unmapped teacher tokens is lost before the division, and pairs whose student token
    lies outside `student_mask` do not count. A text to which nothing was carried has no mean to
    take the floor from and gets a row of zeros.

    Args:
        teacher_mass: (B, R) masses.
        pairs: (P, 3) int64, rows (batch index, teacher position, student position).
        student_mask: (B, S) bool, student tokens that may hold mass.
        floor: Mass of a token that nothing was carried to, in units of the mean carried mass.

    Returns:
        (B, S) masses.

    Raises:
        ValueError: Shapes disagree, the mask is not boolean, pairs are not int64, floor < 0.

    Example:
        >>> mass = torch.tensor([[0.5, 0.5]])
        >>> pairs = torch.tensor([[0, 0, 0], [0, 0, 1], [0, 1, 1]])
        >>> student_masses(mass, pairs, torch.tensor([[True, True, True]]), floor=0.0)
        tensor([[0.2500, 0.7500, 0.0000]])
    """
    if floor < 0:
        raise ValueError(f"floor must not be negative, got {floor}")
    share = pair_shares(teacher_mass, pairs, student_mask)
    text, _, student_position = pairs.unbind(dim=1)
    carried = teacher_mass.new_zeros(student_mask.shape).index_put(
        (text, student_position), share, accumulate=True
    )
    holders = carried > 0
    mean = carried.sum(dim=1, keepdim=True) / holders.sum(dim=1, keepdim=True).clamp(min=1)
    filled = torch.where(student_mask & ~holders, floor * mean, carried)
    return _divide_by_total(filled)


@in_full_precision
def pair_shares(teacher_mass: Tensor, pairs: Tensor, student_mask: Tensor) -> Tensor:
    """Split each teacher token's mass among the pairs that it is part of.

    Formula:
        w_ji = b_j / (number of pieces j is mapped to)

    Args:
        teacher_mass: (B, R) masses.
        pairs: (P, 3) int64, rows (batch index, teacher position, student position).
        student_mask: (B, S) bool, student tokens that may hold mass.

    Returns:
        (P,) shares; 0 for a pair whose student token lies outside `student_mask`.

    Raises:
        ValueError: Shapes disagree, the mask is not boolean, or pairs are not int64.

    Example:
        >>> pairs = torch.tensor([[0, 0, 0], [0, 0, 1], [0, 1, 1]])
        >>> pair_shares(torch.tensor([[0.5, 0.25]]), pairs, torch.tensor([[True, True]]))
        tensor([0.2500, 0.2500, 0.2500])
    """
    _check_map(teacher_mass, pairs, student_mask)
    text, teacher_position, student_position = pairs.unbind(dim=1)
    counted = student_mask[text, student_position].to(teacher_mass.dtype)
    pieces = torch.zeros_like(teacher_mass).index_put(
        (text, teacher_position), counted, accumulate=True
    )
    share = counted * teacher_mass[text, teacher_position]
    return share / pieces[text, teacher_position].clamp(min=1.0)


@in_full_precision
def paper_teacher_masses(importance: Tensor, mask: Tensor) -> Tensor:
    """Turn teacher importance into masses with a softmax (the paper's form).

    Formula:
        b = softmax(s) over the mask

    The column sums add up to the text's length, so an attention sink takes nearly all mass. That
    is what the authors ran, and it is kept here on purpose.

    Args:
        importance: (B, R).
        mask: (B, R) bool, tokens that are not padding.

    Returns:
        (B, R) masses, zero outside the mask; a text with an empty mask gets a row of zeros.

    Raises:
        ValueError: Shapes disagree or the mask is not boolean.

    Example:
        >>> mask = torch.tensor([[True, True, False]])
        >>> paper_teacher_masses(torch.tensor([[1.0, 1.0, 5.0]]), mask)
        tensor([[0.5000, 0.5000, 0.0000]])
    """
    require_shapes(importance=(importance, "B R"), mask=(mask, "B R"))
    require_masks(mask=mask)
    return _masked_softmax(importance, mask)


@in_full_precision
def paper_student_masses(
    teacher_mass: Tensor, teacher_mask: Tensor, pairs: Tensor, student_mask: Tensor
) -> Tensor:
    """Scatter teacher masses to the student and apply a second softmax (paper's form).

    Formula:
        c_i = b_j of the last teacher token j mapped to i, min(b) if there is none
        a = softmax(c) over the student mask, divided by its sum

    The authors write occurrence by occurrence, so the last teacher token wins where several meet.
    The second softmax makes the student masses nearly uniform; that, too, is kept on purpose.

    Args:
        teacher_mass: (B, R) masses.
        teacher_mask: (B, R) bool, tokens that are not padding.
        pairs: (P, 3) int64, rows (batch index, teacher position, student position), any order.
        student_mask: (B, S) bool, tokens that are not padding.

    Returns:
        (B, S) masses; a text with an empty mask on either side gets a row of zeros.

    Raises:
        ValueError: Shapes disagree, a mask is not boolean, or pairs are not int64.

    Example:
        >>> mass, mask = torch.tensor([[0.8, 0.2]]), torch.tensor([[True, True]])
        >>> pairs = torch.tensor([[0, 0, 0], [0, 1, 0]])
        >>> paper_student_masses(mass, mask, pairs, torch.tensor([[True, True]]))
        tensor([[0.5000, 0.5000]])
    """
    _check_map(teacher_mass, pairs, student_mask)
    require_shapes(teacher_mass=(teacher_mass, "B R"), teacher_mask=(teacher_mask, "B R"))
    require_masks(teacher_mask=teacher_mask)
    text, teacher_position, student_position = pairs.unbind(dim=1)
    position = teacher_position.masked_fill(~teacher_mask[text, teacher_position], -1)
    # Plain index assignment has no defined winner among equal indices on a GPU; a maximum has.
    width = student_mask.shape[1]
    last = torch.full((student_mask.numel(),), -1, dtype=torch.int64, device=pairs.device)
    last = last.scatter_reduce(0, text * width + student_position, position, reduce="amax")
    last = last.reshape(student_mask.shape)
    present = teacher_mask.any(dim=1, keepdim=True)
    least = teacher_mass.masked_fill(~teacher_mask, torch.inf).amin(dim=1, keepdim=True)
    least = least.masked_fill(~present, 0.0)
    carried = torch.where(last >= 0, teacher_mass.gather(1, last.clamp(min=0)), least)
    return _divide_by_total(_masked_softmax(carried, student_mask & present))


def _check_map(teacher_mass: Tensor, pairs: Tensor, student_mask: Tensor) -> None:
    require_shapes(teacher_mass=(teacher_mass, "B R"), student_mask=(student_mask, "B S"))
    require_masks(student_mask=student_mask)
    if pairs.dim() != 2 or pairs.shape[1] != 3:
        raise ValueError(f"pairs has shape {tuple(pairs.shape)}, expected (P, 3)")
    if pairs.dtype != torch.int64:
        raise ValueError(f"pairs must be int64, got {pairs.dtype}")


def _divide_by_total(values: Tensor) -> Tensor:
    total = values.sum(dim=1, keepdim=True)
    return values / torch.where(total > 0, total, 1.0)


def _masked_softmax(values: Tensor, mask: Tensor) -> Tensor:
    # The lowest finite number and not -inf: a row without valid tokens must not become NaN.
    lowest = torch.finfo(values.dtype).min
    return values.masked_fill(~mask, lowest).softmax(dim=1).masked_fill(~mask, 0.0)
