"""Entropic transport that need not move all mass."""

import ot
import pytest
import torch
from torch.autograd import gradcheck

from emo.losses import transport_loss, unbalanced_transport_loss

from .test_transport import joined, problem

EXACT = {"rounds": 5000, "tolerance": 1e-13}


def test_equals_pot_one_by_one():
    problems = [problem(1, *sizes, seed) for seed, sizes in enumerate([(6, 8), (3, 2), (1, 5)])]
    result = unbalanced_transport_loss(*joined(problems), marginal=0.3, **EXACT)
    for text, (cost, student_mass, teacher_mass) in enumerate(problems):
        cost, ours, theirs = (given[0].numpy() for given in (cost, student_mass, teacher_mass))
        plan = ot.unbalanced.sinkhorn_unbalanced(
            ours, theirs, cost, 0.1, 0.3, reg_type="kl", numItermax=20000, stopThr=1e-14
        )
        rows, columns = plan.shape
        assert result.plan[text, :rows, :columns].numpy() == pytest.approx(plan, abs=1e-9)
        assert result.plan[text].sum().item() == pytest.approx(plan.sum(), abs=1e-9), "no padding"
        assert result.loss[text].item() == pytest.approx((plan * cost).sum())
    assert result.converged.all()


def test_rounds_are_those_of_a_plain_loop():
    cost, student_mass, teacher_mass = problem(2, 4, 5)
    result = unbalanced_transport_loss(cost, student_mass, teacher_mass, rounds=3, marginal=0.5)
    for text in range(2):
        f, g = torch.zeros(4, dtype=torch.float64), torch.zeros(5, dtype=torch.float64)
        a, b = student_mass[text], teacher_mass[text]
        plans = []
        for _ in range(3):
            for i in range(4):
                total = sum(b[j] * ((g[j] - cost[text, i, j]) / 0.1).exp() for j in range(5))
                f[i] = -0.5 * 0.1 / 0.6 * total.log()
            for j in range(5):
                total = sum(a[i] * ((f[i] - cost[text, i, j]) / 0.1).exp() for i in range(4))
                g[j] = -0.5 * 0.1 / 0.6 * total.log()
            scores = (f[:, None] + g[None, :] - cost[text]) / 0.1
            plans.append(a[:, None] * b[None, :] * scores.exp())
        torch.testing.assert_close(result.plan[text], plans[-1])
        moved = plans[-1] - plans[-2]
        expected = max(moved.sum(dim=0).abs().max(), moved.sum(dim=1).abs().max())
        torch.testing.assert_close(result.error[text], expected)
    assert not result.converged.any()


def test_a_strict_marginal_is_balanced_transport_and_a_loose_one_moves_nothing_far():
    cost, student_mass, teacher_mass = problem(3, 5, 6)
    strict = unbalanced_transport_loss(cost, student_mass, teacher_mass, marginal=1e5, **EXACT)
    balanced = transport_loss(cost, student_mass, teacher_mass, rounds=5000, tolerance=1e-12)
    torch.testing.assert_close(strict.plan, balanced.plan, atol=1e-5, rtol=0)
    loose = unbalanced_transport_loss(cost + 9, student_mass, teacher_mass, marginal=0.5, **EXACT)
    assert loose.plan.sum() < 1e-3
    assert loose.converged.all()


def test_gradient_is_that_of_the_objective():
    """By the envelope theorem: the plan is the gradient of the minimum in the cost."""
    cost, student_mass, teacher_mass = problem(1, 4, 3)

    def divergence(x, y):
        return (torch.special.xlogy(x, x / y) - x + y).sum()

    def minimum(cost):
        result = unbalanced_transport_loss(cost, student_mass, teacher_mass, marginal=0.4, **EXACT)
        plan = result.plan[0]
        value = 0.1 * divergence(plan, student_mass[0][:, None] * teacher_mass[0][None, :])
        value = value + 0.4 * divergence(plan.sum(dim=1), student_mass[0])
        value = value + 0.4 * divergence(plan.sum(dim=0), teacher_mass[0])
        return value + result.loss[0]

    assert gradcheck(minimum, cost.requires_grad_(), eps=1e-5, atol=1e-6)
    result = unbalanced_transport_loss(cost, student_mass, teacher_mass)
    (gradient,) = torch.autograd.grad(result.loss.sum(), cost)
    torch.testing.assert_close(gradient, result.plan)


def test_batch_order_and_batch_size_change_nothing():
    problems = [problem(1, *sizes, seed) for seed, sizes in enumerate([(6, 4), (2, 9), (5, 5)])]
    given = joined(problems)
    together = unbalanced_transport_loss(*given, **EXACT)
    for text, single in enumerate(problems):
        alone = unbalanced_transport_loss(*single, **EXACT)
        torch.testing.assert_close(together.loss[text], alone.loss[0], atol=1e-10, rtol=0)
    flipped = unbalanced_transport_loss(*(tensor.flip(0) for tensor in given), **EXACT)
    torch.testing.assert_close(flipped.loss.flip(0), together.loss)


def test_it_stops_when_nothing_moves_any_more():
    """And says so where something still does."""
    given = problem(2, 6, 6)
    rested = unbalanced_transport_loss(*given, rounds=10_000_000)
    assert rested.converged.all()
    hurried = unbalanced_transport_loss(*given, epsilon=1e-3, rounds=5)
    assert not hurried.converged.any()


def test_empty_and_malformed_texts_are_set_aside():
    cost, student_mass, teacher_mass = problem(4, 4, 5)
    sound = unbalanced_transport_loss(cost[:1], student_mass[:1], teacher_mass[:1])
    student_mass[1] = 0
    cost[2, 1, 1] = torch.nan
    teacher_mass[3, 0] = -teacher_mass[3, 0]
    cost.requires_grad_()
    result = unbalanced_transport_loss(cost, student_mass, teacher_mass)
    assert result.empty.tolist() == [False, True, False, False]
    assert result.converged.tolist() == [True, True, False, False]
    assert result.error[2:].isinf().all()
    assert result.loss[1:].eq(0).all()
    torch.testing.assert_close(result.loss[:1], sound.loss, atol=1e-5, rtol=0)
    (gradient,) = torch.autograd.grad(result.loss.sum(), cost)
    assert gradient[1:].eq(0).all()


def test_wrong_numbers_are_named():
    with pytest.raises(ValueError, match="marginal must be positive, got 0"):
        unbalanced_transport_loss(*problem(1, 2, 2), marginal=0)
