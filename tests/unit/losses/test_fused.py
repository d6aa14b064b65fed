"""Entropic fused Gromov-Wasserstein transport."""

import ot
import pytest
import torch
from torch.autograd import gradcheck

import emo.losses.fused
from emo.losses import fused_transport_loss, transport_loss

EXACT = {"rounds": 3000, "tolerance": 1e-12}


def problem(batch, student_length, teacher_length, seed=0, dtype=torch.float64):
    """Cost, both structures, and both masses."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape):
        return torch.rand(*shape, generator=generator, dtype=dtype)

    def distances(length):
        points = uniform(batch, length, 3)
        return torch.cdist(points, points)

    masses = uniform(batch, student_length), uniform(batch, teacher_length)
    return (
        uniform(batch, student_length, teacher_length),
        distances(student_length),
        distances(teacher_length),
        *(mass / mass.sum(dim=1, keepdim=True) for mass in masses),
    )


def joined(problems):
    """Pad single problems to one batch; padding holds NaN and zero mass."""
    longest = [max(given[side].shape[1] for given in problems) for side in (3, 4)]
    shapes = [longest, [longest[0]] * 2, [longest[1]] * 2, longest[:1], longest[1:]]
    batch = []
    for place, shape in enumerate(shapes):
        filler = 0.0 if place > 2 else torch.nan
        padded = torch.full((len(problems), *shape), filler, dtype=torch.float64)
        for text, given in enumerate(problems):
            own = given[place][0]
            padded[(text, *map(slice, own.shape))] = own
        batch.append(padded)
    return batch


@pytest.fixture
def settled(monkeypatch):
    """Go on until nothing moves."""
    monkeypatch.setattr(emo.losses.fused, "STRUCTURE_ROUNDS", 300)


def test_equals_pot_one_by_one(settled):
    problems = [problem(1, *sizes, seed) for seed, sizes in enumerate([(6, 8), (3, 2), (5, 5)])]
    result = fused_transport_loss(*joined(problems), structure=0.4, **EXACT)
    for text, given in enumerate(problems):
        cost, ours, theirs, student_mass, teacher_mass = (each[0].numpy() for each in given)
        plan, log = ot.gromov.entropic_fused_gromov_wasserstein(
            cost,
            ours,
            theirs,
            student_mass,
            teacher_mass,
            epsilon=0.1,
            alpha=0.4,
            solver="PGD",
            tol=1e-13,
            stopThr=1e-13,
            numItermax=20000,
            log=True,
        )
        rows, columns = plan.shape
        assert result.plan[text, :rows, :columns].numpy() == pytest.approx(plan, abs=1e-8)
        assert result.plan[text].sum().item() == pytest.approx(1)
        assert result.loss[text].item() == pytest.approx(log["fgw_dist"], abs=1e-7)
    assert (result.error < 1e-9).all()


def test_rounds_and_loss_are_those_of_a_plain_loop(monkeypatch):
    monkeypatch.setattr(emo.losses.fused, "STRUCTURE_ROUNDS", 2)
    cost, ours, theirs, student_mass, teacher_mass = (each[0] for each in problem(1, 3, 4))
    result = fused_transport_loss(*problem(1, 3, 4), structure=0.3, **EXACT)

    def difference(i, j, plan):
        return sum(
            (ours[i, k] - theirs[j, m]) ** 2 * plan[k, m] for k in range(3) for m in range(4)
        )

    plan = student_mass[:, None] * teacher_mass[None, :]
    for _ in range(2):
        slope = torch.zeros(3, 4, dtype=torch.float64)
        for i in range(3):
            for j in range(4):
                slope[i, j] = 0.7 * cost[i, j] + 0.3 * 2 * difference(i, j, plan)
        plan = ot.sinkhorn(student_mass, teacher_mass, slope, 0.1, stopThr=1e-13)
    torch.testing.assert_close(result.plan[0], plan, atol=1e-9, rtol=0)
    quadratic = sum(plan[i, j] * difference(i, j, plan) for i in range(3) for j in range(4))
    torch.testing.assert_close(result.loss[0], 0.7 * (plan * cost).sum() + 0.3 * quadratic)
    assert not result.converged.any(), "it still moves"


def test_without_structure_it_is_plain_transport():
    cost, ours, theirs, *masses = problem(2, 5, 6)
    plain = transport_loss(cost, *masses, **EXACT)
    fused = fused_transport_loss(cost, ours, theirs, *masses, structure=1e-9, **EXACT)
    torch.testing.assert_close(fused.loss, plain.loss, atol=1e-7, rtol=0)
    torch.testing.assert_close(fused.plan, plain.plan, atol=1e-7, rtol=0)


def test_gradients_are_those_of_the_objective(monkeypatch):
    """By the envelope theorem, in the cost and in both structures."""
    monkeypatch.setattr(emo.losses.fused, "STRUCTURE_ROUNDS", 30)
    cost, ours, theirs, *masses = problem(1, 3, 2)

    def minimum(cost, ours, theirs):
        ours, theirs = (ours + ours.mT) / 2, (theirs + theirs.mT) / 2
        result = fused_transport_loss(
            cost, ours, theirs, *masses, structure=0.4, epsilon=0.5, **EXACT
        )
        return result.loss[0] + 0.5 * torch.special.xlogy(result.plan, result.plan).sum()

    given = tuple(each.requires_grad_() for each in (cost, ours, theirs))
    assert gradcheck(minimum, given, eps=1e-5, atol=1e-5)
    gradients = torch.autograd.grad(minimum(*given), given)
    assert all(gradient.abs().max() > 1e-3 for gradient in gradients)


def test_padding_batch_order_and_batch_size_change_nothing():
    problems = [problem(1, *sizes, seed) for seed, sizes in enumerate([(6, 4), (2, 9), (5, 5)])]
    given = [each.requires_grad_() for each in joined(problems)]
    together = fused_transport_loss(*given, **EXACT)
    for text, single in enumerate(problems):
        alone = fused_transport_loss(*single, **EXACT)
        torch.testing.assert_close(together.loss[text], alone.loss[0], atol=1e-9, rtol=0)
    flipped = fused_transport_loss(*(each.flip(0) for each in given), **EXACT)
    torch.testing.assert_close(flipped.loss.flip(0), together.loss)
    for each, gradient in zip(
        given[:3], torch.autograd.grad(together.loss.sum(), given[:3]), strict=True
    ):
        assert gradient[each.isnan()].eq(0).all()
        assert gradient.isfinite().all()


def test_empty_and_malformed_texts_are_set_aside():
    cost, ours, theirs, student_mass, teacher_mass = problem(5, 4, 5)
    sound = fused_transport_loss(*(each[:1] for each in problem(5, 4, 5)))
    student_mass[1] = 0
    cost[2, 1, 1] = torch.nan
    ours[3, 0, 0] = torch.nan
    theirs[4, 1, 2] = torch.inf
    given = [each.requires_grad_() for each in (cost, ours, theirs)]
    result = fused_transport_loss(*given, student_mass, teacher_mass)
    assert result.empty.tolist() == [False, True, False, False, False]
    assert result.converged[1:].tolist() == [True, False, False, False]
    assert result.error[2:].isinf().all()
    assert result.loss[1:].eq(0).all()
    torch.testing.assert_close(result.loss[:1], sound.loss, atol=1e-5, rtol=0)
    for gradient in torch.autograd.grad(result.loss.sum(), given):
        assert gradient[1:].eq(0).all()


@pytest.mark.parametrize(("structure", "told"), [(0, "positive, got 0"), (1, "below 1, got 1")])
def test_wrong_weights_are_named(structure, told):
    with pytest.raises(ValueError, match=f"structure must be {told}"):
        fused_transport_loss(*problem(1, 2, 2), structure=structure)


def test_wrong_shapes_are_named():
    cost, ours, theirs, *masses = problem(2, 4, 5)
    with pytest.raises(ValueError, match=r"student_structure has shape \(2, 5, 5\), expected"):
        fused_transport_loss(cost, theirs, ours, *masses)
