"""Entropic transport with POT (repaired form)."""

import ot
import pytest
import torch
from torch.autograd import gradcheck

from emo.losses import cosine_cost, paper_transport_loss, transport_loss


def problem(batch, student_length, teacher_length, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape):
        return torch.rand(*shape, generator=generator, dtype=dtype)

    student_mass, teacher_mass = uniform(batch, student_length), uniform(batch, teacher_length)
    cost = uniform(batch, student_length, teacher_length)
    return (
        cost,
        student_mass / student_mass.sum(dim=1, keepdim=True),
        teacher_mass / teacher_mass.sum(dim=1, keepdim=True),
    )


def joined(problems):
    """Pad single problems to one batch; padding holds NaN cost and zero mass."""
    rows = max(cost.shape[1] for cost, _, _ in problems)
    columns = max(cost.shape[2] for cost, _, _ in problems)
    cost = torch.full((len(problems), rows, columns), torch.nan, dtype=problems[0][0].dtype)
    student_mass = torch.zeros(len(problems), rows, dtype=cost.dtype)
    teacher_mass = torch.zeros(len(problems), columns, dtype=cost.dtype)
    for text, (own, first, second) in enumerate(problems):
        cost[text, : own.shape[1], : own.shape[2]] = own[0]
        student_mass[text, : own.shape[1]] = first[0]
        teacher_mass[text, : own.shape[2]] = second[0]
    return cost, student_mass, teacher_mass


def test_equals_pot_sinkhorn_one_by_one():
    cost, student_mass, teacher_mass = problem(3, 6, 8)
    result = transport_loss(cost, student_mass, teacher_mass, rounds=1000, tolerance=1e-12)
    for text in range(3):
        plan = ot.sinkhorn(
            student_mass[text].numpy(),
            teacher_mass[text].numpy(),
            cost[text].numpy(),
            0.1,
            stopThr=1e-14,
        )
        assert result.plan[text].numpy() == pytest.approx(plan, abs=1e-10)
        assert result.loss[text].item() == pytest.approx((plan * cost[text].numpy()).sum())


def test_rounds_are_those_of_a_plain_log_domain_loop():
    """POT's batched solver is young and its interface moves: this pins what one round does."""
    cost, student_mass, teacher_mass = problem(2, 4, 5)
    result = transport_loss(cost, student_mass, teacher_mass, rounds=3, tolerance=1e-15)
    for text in range(2):
        kernel, v = -cost[text] / 0.1, torch.zeros(5, dtype=torch.float64)
        for _ in range(3):
            u = student_mass[text].log() - (kernel + v[None, :]).logsumexp(dim=1)
            v = teacher_mass[text].log() - (kernel + u[:, None]).logsumexp(dim=0)
        plan = (kernel + u[:, None] + v[None, :]).exp()
        torch.testing.assert_close(result.plan[text], plan)
        error = (plan.sum(dim=1) - student_mass[text]).abs().max()
        torch.testing.assert_close(result.error[text], error)
    assert not result.converged.any()


def test_small_epsilon_comes_near_the_exact_transport_without_nan():
    cost, student_mass, teacher_mass = problem(2, 5, 7, dtype=torch.float32)
    result = transport_loss(
        cost, student_mass, teacher_mass, epsilon=1e-3, rounds=20_000, tolerance=1e-4
    )
    assert result.converged.all()
    for text in range(2):
        exact = ot.emd2(
            student_mass[text].double().numpy() / student_mass[text].double().sum().item(),
            teacher_mass[text].double().numpy() / teacher_mass[text].double().sum().item(),
            cost[text].double().numpy(),
        )
        assert result.loss[text].item() == pytest.approx(exact, abs=2e-3)


def test_gradient_is_the_plan():
    cost, student_mass, teacher_mass = problem(2, 4, 3)
    cost.requires_grad_()
    student_mass.requires_grad_()
    result = transport_loss(cost, student_mass, teacher_mass)
    (gradient,) = torch.autograd.grad(result.loss.sum(), cost, retain_graph=True)
    torch.testing.assert_close(gradient, result.plan)
    assert not result.plan.requires_grad
    assert torch.autograd.grad(result.loss.sum(), student_mass, allow_unused=True) == (None,)


def test_gradient_equals_that_of_the_regularised_value():
    """By the envelope theorem the plan is the exact gradient of min <P, C> - ε H(P)."""
    cost, student_mass, teacher_mass = problem(1, 4, 3)

    def regularised(cost):
        plan = transport_loss(cost, student_mass, teacher_mass, 0.1, 5000, 1e-14).plan
        value = (plan * cost.detach()).sum() + 0.1 * torch.special.xlogy(plan, plan).sum()
        return value + ((cost - cost.detach()) * plan).sum()

    assert gradcheck(regularised, cost.requires_grad_(), eps=1e-5, atol=1e-6)


def test_padding_batch_order_and_batch_size_change_nothing():
    problems = [problem(1, *lengths, seed) for seed, lengths in enumerate([(6, 4), (2, 9), (5, 5)])]
    exact = {"rounds": 2000, "tolerance": 1e-12}
    cost, student_mass, teacher_mass = joined(problems)
    together = transport_loss(cost, student_mass, teacher_mass, **exact)
    for text, single in enumerate(problems):
        alone = transport_loss(*single, **exact)
        torch.testing.assert_close(together.loss[text], alone.loss[0], atol=1e-9, rtol=0)
        assert together.plan[text].sum().item() == pytest.approx(1)
    order = torch.tensor([2, 0, 1])
    shuffled = transport_loss(cost[order], student_mass[order], teacher_mass[order], **exact)
    torch.testing.assert_close(shuffled.loss, together.loss[order])


def test_padding_gets_neither_plan_nor_gradient():
    cost, student_mass, teacher_mass = joined([problem(1, 3, 2), problem(1, 2, 4, seed=1)])
    cost.requires_grad_()
    result = transport_loss(cost, student_mass, teacher_mass)
    (gradient,) = torch.autograd.grad(result.loss.sum(), cost)
    padding = (student_mass == 0)[:, :, None] | (teacher_mass == 0)[:, None, :]
    assert result.plan[padding].eq(0).all()
    assert gradient[padding].eq(0).all()
    assert result.converged.all()


def test_zero_masses_may_stand_anywhere():
    cost, student_mass, teacher_mass = problem(2, 6, 7)
    rows, columns = torch.tensor([1, 2, 5]), torch.tensor([0, 3, 4, 6])
    holes = torch.full_like(cost, torch.nan)
    holes[:, rows[:, None], columns] = cost[:, rows[:, None], columns]
    sparse = torch.zeros_like(student_mass), torch.zeros_like(teacher_mass)
    for mass, full, places in zip(
        sparse, (student_mass, teacher_mass), (rows, columns), strict=True
    ):
        mass[:, places] = full[:, places] / full[:, places].sum(dim=1, keepdim=True)
    result = transport_loss(holes, *sparse)
    dense = transport_loss(
        cost[:, rows[:, None], columns], sparse[0][:, rows], sparse[1][:, columns]
    )
    assert result.converged.all()
    torch.testing.assert_close(result.loss, dense.loss, atol=1e-6, rtol=0)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 5), (5, 1)])
def test_single_tokens(rows, columns):
    cost, student_mass, teacher_mass = problem(2, rows, columns)
    result = transport_loss(cost, student_mass, teacher_mass)
    expected = student_mass[:, :, None] * teacher_mass[:, None, :]
    torch.testing.assert_close(result.plan, expected)
    torch.testing.assert_close(result.loss, (expected * cost).sum(dim=(1, 2)))


def test_empty_and_malformed_texts_are_set_aside():
    cost, student_mass, teacher_mass = problem(6, 4, 5)
    sound = transport_loss(cost[:1], student_mass[:1], teacher_mass[:1])
    student_mass[1] = 0
    teacher_mass[2] = 0
    cost[3, 1, 1] = torch.nan
    student_mass[4, 0] = torch.inf
    teacher_mass[5, 0] = -teacher_mass[5, 0]
    cost.requires_grad_()
    result = transport_loss(cost, student_mass, teacher_mass)
    assert result.empty.tolist() == [False, True, True, False, False, False]
    assert result.converged.tolist() == [True, True, True, False, False, False]
    assert result.error[3:].isinf().all()
    assert result.loss[1:].eq(0).all()
    assert result.plan[1:].eq(0).all()
    torch.testing.assert_close(result.loss[:1], sound.loss)
    (gradient,) = torch.autograd.grad(result.loss.sum(), cost)
    assert gradient[1:].eq(0).all()
    assert gradient[0].abs().max() > 1e-3


def test_one_bad_text_does_not_make_the_others_run_all_rounds(monkeypatch):
    taken = []

    def counting(*arguments, **settings):
        solved = ot.batch.solve_batch(*arguments, **settings)
        taken.append(solved.log["n_iter"])
        return solved

    monkeypatch.setattr("emo.losses.transport.solve_batch", counting)
    cost, student_mass, teacher_mass = problem(3, 4, 5)
    transport_loss(cost, student_mass, teacher_mass)
    student_mass[1] = 0
    cost[2] = torch.nan
    transport_loss(cost, student_mass, teacher_mass)
    assert taken[1] <= taken[0] < 99


def test_texts_that_do_not_converge_are_named():
    cost, student_mass, teacher_mass = problem(2, 6, 6)
    result = transport_loss(cost, student_mass, teacher_mass, epsilon=1e-3, rounds=5)
    assert not result.converged.any()
    assert result.error.min() > 1e-5
    unequal = transport_loss(cost, student_mass, 2 * teacher_mass)
    assert not unequal.converged.any()


def test_convergence_is_told_text_by_text():
    """The solver stops for all at once and says nothing of the texts it left halfway."""
    cost, student_mass, teacher_mass = problem(2, 6, 6)
    cost[0] = 0.5  # any product of marginals is optimal: converged in the first round
    result = transport_loss(cost, student_mass, teacher_mass, epsilon=1e-3, rounds=5)
    assert result.converged.tolist() == [True, False]
    assert result.error[0] < 1e-12
    assert result.error[1] > 1e-5


def test_identical_states_never_cost_less_than_nothing():
    generator = torch.Generator().manual_seed(0)
    states, valid = torch.randn(4, 9, 64, generator=generator), torch.ones(4, 9, dtype=torch.bool)
    cost = cosine_cost(states, states, valid, valid)  # -1e-7 on the diagonal
    mass = torch.full((4, 9), 1 / 9)
    loss = transport_loss(cost, mass, mass, epsilon=0.01).loss
    assert loss.min() >= -1e-6
    assert loss.max() < 1e-4


def test_neither_solver_multiplies_matrices():
    """A GPU may round matrix products to TF32, in which Sinkhorn stops short of its tolerance."""
    for solver in (transport_loss, paper_transport_loss):
        with torch.profiler.profile() as record:
            solver(*problem(2, 4, 5), rounds=2)
        names = {event.key for event in record.key_averages()}
        assert "aten::sum" in names
        assert not any("mm" in name or "matmul" in name or "dot" in name for name in names)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast_converge(dtype):
    cost, student_mass, teacher_mass = problem(2, 30, 40)
    masses = [
        (mass.to(dtype).float() / mass.to(dtype).float().sum(dim=1, keepdim=True))
        for mass in (student_mass, teacher_mass)
    ]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        live = cost.to(dtype).requires_grad_()
        result = transport_loss(live, *masses)
    (gradient,) = torch.autograd.grad(result.loss.sum(), live)
    torch.testing.assert_close(gradient, result.plan.to(dtype))
    assert result.loss.dtype == torch.float32
    assert result.loss.isfinite().all()
    assert result.converged.all()


def test_wrong_inputs_are_named():
    cost, student_mass, teacher_mass = problem(2, 4, 5)
    with pytest.raises(ValueError, match=r"student_mass has shape \(2, 5\), expected \(B=2, S=4\)"):
        transport_loss(cost, teacher_mass, student_mass)
    with pytest.raises(ValueError, match=r"cost has shape \(4, 5\), expected \(B, S, R\)"):
        transport_loss(cost[0], student_mass, teacher_mass)
    with pytest.raises(ValueError, match="epsilon must be positive, got 0"):
        transport_loss(cost, student_mass, teacher_mass, epsilon=0)
    with pytest.raises(ValueError, match="rounds must be positive, got 0"):
        transport_loss(cost, student_mass, teacher_mass, rounds=0)
    with pytest.raises(ValueError, match="no dimension may be empty"):
        transport_loss(cost[:, :, :0], student_mass, teacher_mass[:, :0])
