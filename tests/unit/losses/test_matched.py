"""The loss of mapped token pairs."""

import pytest
import torch
from scipy.spatial.distance import cosine
from torch.autograd import gradcheck

from emo.losses import matched_loss, pair_shares

LENGTHS = [(6, 5), (3, 7), (4, 4), (2, 2)]


def problem(seed=0, dtype=torch.float64):
    """Four texts; what is padded is NaN, some tokens have several pairs, and the last has none."""
    generator = torch.Generator().manual_seed(seed)
    student = torch.full((4, 6, 5), torch.nan, dtype=dtype)
    teacher = torch.full((4, 7, 5), torch.nan, dtype=dtype)
    mass, mask, pairs = torch.zeros(4, 7, dtype=dtype), torch.zeros(4, 6, dtype=torch.bool), []
    for text, (own, other) in enumerate(LENGTHS):
        student[text, :own] = torch.randn(own, 5, generator=generator, dtype=dtype)
        teacher[text, :other] = torch.randn(other, 5, generator=generator, dtype=dtype)
        mass[text, :other] = torch.rand(other, generator=generator, dtype=dtype)
        mask[text, :own] = True
        if text < 3:
            drawn = torch.randint(100, (7, 2), generator=generator)
            pairs += [(text, int(t) % other, int(s) % own) for t, s in drawn]
    mask[0, 2] = False
    student[0, 2] = torch.nan  # what does not count is never read
    mass /= mass.sum(dim=1, keepdim=True)
    return student, teacher, torch.tensor(sorted(set(pairs))), mass, mask


def slow(student, teacher, pairs, mass, mask):
    losses = []
    for text in range(len(student)):
        own = [(t, s) for b, t, s in pairs.tolist() if b == text and mask[text, s]]
        weights = [float(mass[text, t]) / sum(t == other for other, _ in own) for t, _ in own]
        total = 0.0
        for (t, s), weight in zip(own, weights, strict=True):
            total += weight * cosine(student[text, s], teacher[text, t])
        if sum(weights):
            losses.append(total / sum(weights))
    return sum(losses) / len(losses), len(losses)


@pytest.mark.parametrize("seed", range(3))
def test_equals_a_slow_loop(seed):
    given = problem(seed)
    expected, used = slow(*given)
    result = matched_loss(*given)
    assert result.loss.item() == pytest.approx(expected)
    assert result.texts_used.item() == used == 3
    assert result.texts_skipped.item() == 1


def test_shares_are_what_transport_would_carry():
    _, _, pairs, mass, mask = problem()
    shares = pair_shares(mass, pairs, mask)
    for (text, t, s), share in zip(pairs.tolist(), shares.tolist(), strict=True):
        pieces = sum(bool(mask[b, other]) and (b, j) == (text, t) for b, j, other in pairs.tolist())
        assert share == pytest.approx(mask[text, s].item() * mass[text, t].item() / max(1, pieces))


def test_order_and_padding_change_nothing():
    student, teacher, pairs, mass, mask = problem()
    usual = matched_loss(student, teacher, pairs, mass, mask).loss
    mixed = pairs[torch.randperm(len(pairs), generator=torch.Generator().manual_seed(4))]
    torch.testing.assert_close(matched_loss(student, teacher, mixed, mass, mask).loss, usual)
    order = torch.tensor([2, 0, 3, 1])
    moved = pairs.clone()
    moved[:, 0] = order.argsort()[pairs[:, 0]]
    wide = torch.nn.functional.pad
    torch.testing.assert_close(
        matched_loss(
            wide(student[order], (0, 0, 0, 2)),
            wide(teacher[order], (0, 0, 0, 3)),
            moved,
            wide(mass[order], (0, 3)),
            wide(mask[order], (0, 2)),
        ).loss,
        usual,
    )


def test_gradients_reach_the_states_of_pairs_and_no_others():
    student, teacher, pairs, mass, mask = problem()
    student, teacher = (states.nan_to_num(1.0).requires_grad_() for states in (student, teacher))
    assert gradcheck(lambda s, t: matched_loss(s, t, pairs, mass, mask).loss, (student, teacher))
    (gradient,) = torch.autograd.grad(
        matched_loss(student, teacher, pairs, mass, mask).loss, student
    )
    paired = torch.zeros_like(mask)
    paired[pairs[:, 0], pairs[:, 2]] = True
    assert (gradient.abs().sum(dim=2) > 0).equal(paired & mask)


def test_without_pairs_the_loss_is_zero_with_a_graph():
    student, teacher, pairs, mass, mask = problem()
    student = student.nan_to_num().requires_grad_()
    for none in (pairs[:0], pairs[(pairs[:, 0] == 0) & (pairs[:, 2] == 2)]):
        result = matched_loss(student, teacher, none, mass, mask)
        (gradient,) = torch.autograd.grad(result.loss, student)
        assert result.loss.item() == 0
        assert gradient.eq(0).all()
        assert (result.texts_used.item(), result.texts_skipped.item()) == (0, 4)


def test_half_precision_and_zero_states_are_finite():
    student, teacher, pairs, mass, mask = problem(dtype=torch.float32)
    student = torch.zeros_like(student, dtype=torch.float16).requires_grad_()
    loss = matched_loss(student, teacher.half(), pairs, mass, mask).loss
    (gradient,) = torch.autograd.grad(loss, student)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, torch.tensor(1.0))
    assert gradient.isfinite().all()


def test_wrong_shapes_are_named():
    student, teacher, pairs, mass, mask = problem()
    with pytest.raises(ValueError, match=r"teacher has shape \(4, 7, 4\), expected \(B=4, R=7"):
        matched_loss(student, teacher[..., :4], pairs, mass, mask)
    with pytest.raises(ValueError, match="student_mask must be boolean"):
        matched_loss(student, teacher, pairs, mass, mask.long())
