"""Importance and masses."""

import pytest
import torch
from torch.autograd import gradcheck

from emo.losses import (
    paper_student_masses,
    paper_teacher_masses,
    student_masses,
    teacher_masses,
)


def mask_of(*lengths, width):
    return torch.arange(width)[None, :] < torch.tensor(lengths)[:, None]


def slow_student_masses(teacher_mass, pairs, student_mask, floor):
    result = torch.zeros(student_mask.shape, dtype=teacher_mass.dtype)
    pairs = [tuple(pair) for pair in pairs.tolist()]
    for b in range(len(result)):
        own = [(t, s) for text, t, s in pairs if text == b and student_mask[b, s]]
        for t, s in own:
            result[b, s] += teacher_mass[b, t] / sum(1 for other, _ in own if other == t)
        holders = [s for s in range(result.shape[1]) if result[b, s] > 0]
        if not holders:
            continue
        mean = sum(result[b, s] for s in holders) / len(holders)
        for s in range(result.shape[1]):
            if student_mask[b, s] and s not in holders:
                result[b, s] = floor * mean
        result[b] /= result[b].sum()
    return result


def test_teacher_masses_add_up_and_leave_excluded_texts_zero():
    importance = torch.rand(3, 6, generator=torch.Generator().manual_seed(1))
    masses = teacher_masses(importance, mask_of(6, 2, 0, width=6))
    torch.testing.assert_close(masses.sum(dim=1), torch.tensor([1.0, 1.0, 0.0]))
    assert masses[1, 2:].eq(0).all()


def test_teacher_masses_without_importance_are_zero():
    assert teacher_masses(torch.zeros(1, 3), mask_of(3, width=3)).eq(0).all()


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_a_power_of_the_importance_equals_a_slow_loop(power):
    importance = torch.rand(3, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    importance[0, 1] = 0.0
    mask = mask_of(6, 2, 0, width=6)
    expected = torch.zeros(3, 6, dtype=torch.float64)
    for b, length in enumerate((6, 2)):
        powers = [importance[b, j].item() ** power for j in range(length)]
        for j, value in enumerate(powers):
            expected[b, j] = value / sum(powers)
    importance[~mask] = torch.nan
    torch.testing.assert_close(teacher_masses(importance, mask, power), expected)


def test_power_one_is_the_plain_share_to_the_last_bit():
    importance, mask = torch.rand(4, 9), mask_of(9, 5, 7, 1, width=9)
    kept = importance.masked_fill(~mask, 0.0)
    assert torch.equal(teacher_masses(importance, mask, 1.0), kept / kept.sum(dim=1, keepdim=True))


def test_no_power_takes_a_whole_text_below_the_least_float():
    masses = teacher_masses(torch.tensor([[1e-3, 2e-3]]), mask_of(2, width=2), 30.0)
    torch.testing.assert_close(masses, torch.tensor([[2.0**-30, 1.0]]))
    assert teacher_masses(torch.zeros(1, 3), mask_of(3, width=3), 2.0).eq(0).all()


def test_a_negative_power_is_refused():
    with pytest.raises(ValueError, match="power must not be negative, got -1"):
        teacher_masses(torch.ones(1, 2), mask_of(2, width=2), -1.0)


@pytest.mark.parametrize("floor", [0.0, 0.1, 1.0])
def test_student_masses_equal_a_slow_loop(floor):
    generator = torch.Generator().manual_seed(2)
    mass = teacher_masses(torch.rand(3, 6, generator=generator), mask_of(6, 4, 5, width=6))
    pairs = torch.stack(
        [torch.randint(high, (14,), generator=generator) for high in (2, 6, 7)], dim=1
    ).unique(dim=0)
    student_mask = mask_of(7, 5, 6, width=7)
    expected = slow_student_masses(mass, pairs, student_mask, floor)
    torch.testing.assert_close(student_masses(mass, pairs, student_mask, floor), expected)
    assert expected[2].eq(0).all(), "a text without pairs takes no part"


def test_student_masses_by_hand():
    mass = torch.tensor([[0.6, 0.4]])
    pairs = torch.tensor([[0, 0, 0], [0, 0, 1], [0, 1, 1]])
    masses = student_masses(mass, pairs, mask_of(3, width=4), floor=0.5)
    # carried 0.3 and 0.7, mean 0.5, so the unmapped third token gets 0.25 of 1.25
    torch.testing.assert_close(masses, torch.tensor([[0.24, 0.56, 0.2, 0.0]]))


def test_student_masses_keep_the_order_of_the_batch():
    mass = teacher_masses(torch.tensor([[0.7, 1.9, 0.4, 1.0]]).repeat(2, 1), mask_of(4, 2, width=4))
    pairs = torch.tensor([[0, 0, 1], [0, 3, 2], [1, 1, 0], [1, 0, 3]])
    flipped = pairs.clone()
    flipped[:, 0] = 1 - flipped[:, 0]
    mask = mask_of(4, 4, width=4)
    direct = student_masses(mass, pairs, mask, floor=0.1)
    torch.testing.assert_close(student_masses(mass.flip(0), flipped, mask, 0.1).flip(0), direct)


def test_student_masses_without_any_pair():
    pairs = torch.empty(0, 3, dtype=torch.int64)
    assert student_masses(torch.ones(1, 2), pairs, mask_of(2, width=2), 0.5).eq(0).all()


def test_paper_teacher_masses_are_a_softmax_over_valid_tokens():
    importance = torch.tensor([[3.0, 1.0, 7.0], [1.0, 2.0, 3.0]])
    masses = paper_teacher_masses(importance, mask_of(2, 0, width=3))
    torch.testing.assert_close(masses[0, :2], importance[0, :2].softmax(dim=0))
    assert masses[0, 2] == 0
    assert masses[1].eq(0).all()


def test_paper_student_masses_equal_the_published_steps():
    teacher_mass = paper_teacher_masses(
        torch.tensor([[3.0, 1.0, 2.0, 0.5, 9.0]]), mask_of(4, width=5)
    )
    pairs = torch.tensor([[0, 2, 1], [0, 0, 1], [0, 1, 3], [0, 4, 0]])
    masses = paper_student_masses(teacher_mass, mask_of(4, width=5), pairs, mask_of(4, width=6))
    scattered = torch.full((4,), teacher_mass[0, :4].min().item())
    scattered[1] = teacher_mass[0, 2]  # positions 0 and 2 meet in 1, the later one wins
    scattered[3] = teacher_mass[0, 1]
    torch.testing.assert_close(masses[0, :4], scattered.softmax(dim=0))
    assert masses[0, 4:].eq(0).all()


def test_paper_student_masses_need_both_sides():
    pairs = torch.empty(0, 3, dtype=torch.int64)
    masses = paper_student_masses(
        torch.zeros(2, 3), mask_of(0, 3, width=3), pairs, mask_of(2, 0, width=2)
    )
    assert masses.eq(0).all()


def test_gradients():
    importance = torch.rand(2, 4, dtype=torch.float64, requires_grad=True)
    mask, student_mask = mask_of(4, 3, width=4), mask_of(5, 4, width=5)
    pairs = torch.tensor([[0, 0, 0], [0, 1, 1], [0, 1, 2], [1, 2, 0]])

    def both(importance):
        carried = student_masses(teacher_masses(importance, mask), pairs, student_mask, 0.1)
        paper = paper_student_masses(
            paper_teacher_masses(importance, mask), mask, pairs, student_mask
        )
        return carried.square().sum() + paper.square().sum()

    assert gradcheck(both, importance)
    (gradient,) = torch.autograd.grad(both(importance), importance)
    assert gradient.abs().max() > 1e-3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_widened(dtype):
    mask = mask_of(6, width=6)
    masses = teacher_masses(torch.linspace(0.1, 3.0, 6)[None].to(dtype), mask)
    assert masses.dtype == torch.float32
    torch.testing.assert_close(masses.sum(), torch.tensor(1.0))


def test_wrong_inputs_are_named():
    mask = mask_of(3, width=3)
    mass = torch.ones(1, 3)
    with pytest.raises(ValueError, match=r"mask has shape \(1, 2\)"):
        teacher_masses(mass, mask_of(2, width=2))
    with pytest.raises(ValueError, match="mask must be boolean, got torch.int64"):
        teacher_masses(mass, mask.long())
    with pytest.raises(ValueError, match=r"pairs has shape \(4, 2\), expected \(P, 3\)"):
        student_masses(mass, torch.zeros(4, 2, dtype=torch.int64), mask, 0.1)
    with pytest.raises(ValueError, match="pairs must be int64, got torch.float32"):
        student_masses(mass, torch.zeros(4, 3), mask, 0.1)
    with pytest.raises(ValueError, match=r"floor must not be negative, got -0\.1"):
        student_masses(mass, torch.zeros(1, 3, dtype=torch.int64), mask, -0.1)
    with pytest.raises(ValueError, match=r"teacher_mask has shape \(1, 2\)"):
        paper_student_masses(mass, mask_of(2, width=2), torch.zeros(1, 3, dtype=torch.int64), mask)
