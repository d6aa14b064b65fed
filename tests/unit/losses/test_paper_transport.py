"""Transport loss as the authors ran it."""

import pytest
import torch
from ot.batch import solve_batch
from torch.autograd import gradcheck

from emo.losses import paper_transport_loss


def published(cost, student_mass, teacher_mass):
    """The authors' loop for one text, with their early stop."""
    kernel = torch.exp(-cost / 0.1)
    u = torch.ones_like(student_mass)
    for _ in range(100):
        previous = u
        v = teacher_mass / (kernel.T @ u + 1e-9)
        u = student_mass / (kernel @ v + 1e-9)
        if (u - previous).abs().max() < 1e-9:
            break
    plan = torch.diag(u) @ kernel @ torch.diag(v)
    return (plan * cost).sum()


def problem(batch, rows, columns, seed=0, sharpness=3.0):
    """Attention cost and the paper's masses: near one-hot teacher, near uniform student."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    cost = 1 - (sharpness * normal(batch, rows, columns)).softmax(dim=2)
    student_mass = normal(batch, rows).sigmoid().softmax(dim=1)
    return cost, student_mass, (sharpness * normal(batch, columns)).softmax(dim=1)


def joined(first, second):
    rows = max(first[0].shape[1], second[0].shape[1])
    columns = max(first[0].shape[2], second[0].shape[2])
    cost = torch.full((2, rows, columns), torch.nan, dtype=torch.float64)
    student_mass = torch.zeros(2, rows, dtype=torch.float64)
    teacher_mass = torch.zeros(2, columns, dtype=torch.float64)
    for text, (own, student, teacher) in enumerate((first, second)):
        cost[text, : own.shape[1], : own.shape[2]] = own[0]
        student_mass[text, : own.shape[1]] = student[0]
        teacher_mass[text, : own.shape[2]] = teacher[0]
    return cost, student_mass, teacher_mass


def test_by_hand_for_one_token():
    # u and v only rescale, so the plan is the mass but for the offsets
    one = torch.ones(1, 1, dtype=torch.float64)
    result = paper_transport_loss(torch.full((1, 1, 1), 0.3, dtype=torch.float64), one, one)
    assert result.loss.item() == pytest.approx(0.3, abs=1e-6)


@pytest.mark.parametrize("sharpness", [0.0, 1.0, 6.0])
def test_equals_the_published_loop_with_its_early_stop(sharpness):
    cost, student_mass, teacher_mass = problem(4, 7, 9, sharpness=sharpness)
    cost.requires_grad_()
    expected = torch.stack(
        [published(*single) for single in zip(cost, student_mass, teacher_mass, strict=True)]
    )
    actual = paper_transport_loss(cost, student_mass, teacher_mass).loss
    torch.testing.assert_close(actual, expected, atol=1e-6, rtol=0)
    (expected_gradient,) = torch.autograd.grad(expected.sum(), cost)
    (gradient,) = torch.autograd.grad(actual.sum(), cost)
    torch.testing.assert_close(gradient, expected_gradient, atol=1e-6, rtol=0)
    assert gradient.abs().max() > 1e-3


def pot(cost, student_mass, teacher_mass):
    plan = solve_batch(
        cost,
        reg=0.1,
        a=student_mass,
        b=teacher_mass,
        max_iter=100,
        tol=0.0,
        method="log_sinkhorn",
        grad="detach",
    ).plan
    return (plan * cost).sum(dim=(1, 2))


def test_offset_is_invisible_for_attention_costs_and_visible_for_cosine_costs():
    cost, student_mass, teacher_mass = problem(4, 12, 15, sharpness=6.0)
    close = paper_transport_loss(cost, student_mass, teacher_mass).loss
    torch.testing.assert_close(close, pot(cost, student_mass, teacher_mass), atol=1e-5, rtol=0)
    generator = torch.Generator().manual_seed(5)
    cost = 2 * torch.rand(4, 12, 15, generator=generator, dtype=torch.float64)
    far = paper_transport_loss(cost, student_mass, teacher_mass).loss
    assert (far - pot(cost, student_mass, teacher_mass)).abs().max() > 1e-4


def test_padding_and_batch_order_change_nothing():
    first, second = problem(1, 6, 3), problem(1, 2, 8, seed=1)
    cost, student_mass, teacher_mass = joined(first, second)
    cost.requires_grad_()
    together = paper_transport_loss(cost, student_mass, teacher_mass).loss
    alone = torch.cat([paper_transport_loss(*first).loss, paper_transport_loss(*second).loss])
    torch.testing.assert_close(together, alone, atol=1e-9, rtol=0)
    (gradient,) = torch.autograd.grad(together.sum(), cost)
    assert gradient.isfinite().all()
    assert gradient[cost.isnan()].eq(0).all()
    flipped = paper_transport_loss(cost.flip(0), student_mass.flip(0), teacher_mass.flip(0))
    torch.testing.assert_close(flipped.loss.flip(0), together)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 5), (5, 1)])
def test_single_tokens(rows, columns):
    cost, student_mass, teacher_mass = problem(2, rows, columns)
    expected = (student_mass[:, :, None] * teacher_mass[:, None, :] * cost).sum(dim=(1, 2))
    actual = paper_transport_loss(cost, student_mass, teacher_mass).loss
    torch.testing.assert_close(actual, expected, atol=1e-4, rtol=0)


def test_empty_and_malformed_texts_are_set_aside():
    cost, student_mass, teacher_mass = problem(4, 4, 5)
    sound = paper_transport_loss(cost[:1], student_mass[:1], teacher_mass[:1])
    student_mass[1] = 0
    cost[2, 0, 0] = torch.nan
    teacher_mass[3, 0] = torch.inf
    cost.requires_grad_()
    teacher_mass.requires_grad_()
    result = paper_transport_loss(cost, student_mass, teacher_mass)
    torch.testing.assert_close(result.loss[:1], sound.loss)
    assert result.loss[1:].eq(0).all()
    assert result.empty.tolist() == [False, True, False, False]
    assert result.error[1:].tolist() == [0, torch.inf, torch.inf]
    for gradient in torch.autograd.grad(result.loss.sum(), (cost, teacher_mass)):
        assert gradient[1:].eq(0).all()
        assert gradient[0].abs().max() > 1e-3


def test_convergence_is_that_of_the_marginals():
    cost, student_mass, teacher_mass = problem(3, 6, 7)
    result = paper_transport_loss(cost.requires_grad_(), student_mass, teacher_mass)
    for text in range(3):
        plan = result.plan[text]
        rows = (plan.sum(dim=1) - student_mass[text]).abs().max()
        columns = (plan.sum(dim=0) - teacher_mass[text]).abs().max()
        assert result.error[text] == max(rows, columns)
    assert result.converged.all()
    short = paper_transport_loss(cost, student_mass, teacher_mass, epsilon=0.01, rounds=2)
    assert not short.converged.any()
    assert not result.plan.requires_grad


def test_underflow_is_finite_and_told():
    cost, student_mass, teacher_mass = (tensor.float() for tensor in problem(2, 6, 7))
    result = paper_transport_loss(cost, student_mass, teacher_mass, epsilon=1e-3)
    assert result.loss.isfinite().all()
    assert not result.converged.any()


def test_epsilon_and_rounds_are_those_of_the_loop():
    cost, student_mass, teacher_mass = problem(1, 4, 5)
    kernel, u = torch.exp(-cost[0] / 0.3), torch.ones(4, dtype=torch.float64)
    for _ in range(3):
        v = teacher_mass[0] / (kernel.T @ u + 1e-9)
        u = student_mass[0] / (kernel @ v + 1e-9)
    expected = u[:, None] * kernel * v[None, :]
    result = paper_transport_loss(cost, student_mass, teacher_mass, epsilon=0.3, rounds=3)
    torch.testing.assert_close(result.plan[0], expected)


def test_gradients():
    cost, student_mass, teacher_mass = problem(2, 3, 4)
    inputs = tuple(tensor.requires_grad_() for tensor in (cost, student_mass, teacher_mass))
    assert gradcheck(lambda *batch: paper_transport_loss(*batch).loss, inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast_are_finite(dtype):
    cost, student_mass, teacher_mass = (tensor.to(dtype) for tensor in problem(2, 30, 40))
    cost.requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = paper_transport_loss(cost, student_mass, teacher_mass).loss
    (gradient,) = torch.autograd.grad(loss.sum(), cost)
    assert loss.dtype == torch.float32
    assert loss.isfinite().all()
    assert gradient.isfinite().all()


def test_wrong_inputs_are_named():
    cost, student_mass, teacher_mass = problem(2, 4, 5)
    with pytest.raises(ValueError, match=r"teacher_mass has shape \(1, 5\), expected \(B=2, R=5\)"):
        paper_transport_loss(cost, student_mass, teacher_mass[:1])
    with pytest.raises(ValueError, match="rounds must be positive, got 0"):
        paper_transport_loss(cost, student_mass, teacher_mass, rounds=0)
    with pytest.raises(ValueError, match="epsilon must be positive, got -1"):
        paper_transport_loss(cost, student_mass, teacher_mass, epsilon=-1)
