"""Costs between student and teacher tokens."""

import pytest
import torch
from scipy.spatial.distance import cdist
from torch.autograd import gradcheck

from emo.losses import attention_cost, centred_states, cosine_cost, euclidean_cost


def states(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.fixture
def batch():
    student_mask = torch.arange(4)[None, :] < torch.tensor([[4], [2]])
    teacher_mask = torch.arange(5)[None, :] < torch.tensor([[3], [5]])
    return states(2, 4, 6, seed=1), states(2, 5, 6, seed=2), student_mask, teacher_mask


def costs(student, teacher, student_mask, teacher_mask):
    return (
        cosine_cost(student, teacher, student_mask, teacher_mask),
        attention_cost(student, teacher, student_mask, teacher_mask),
        euclidean_cost(student, teacher, student_mask, teacher_mask),
        cosine_cost(
            centred_states(student, student_mask, None),
            centred_states(teacher, teacher_mask, None),
            student_mask,
            teacher_mask,
        ),
    )


@pytest.mark.parametrize(
    ("function", "metric"), [(cosine_cost, "cosine"), (euclidean_cost, "euclidean")]
)
def test_equals_scipy(batch, function, metric):
    student, teacher, student_mask, teacher_mask = batch
    cost = function(*batch)
    assert cost[0, :4, :3].numpy() == pytest.approx(cdist(student[0], teacher[0, :3], metric))
    assert cost[1, :2].numpy() == pytest.approx(cdist(student[1, :2], teacher[1], metric))


def test_a_centre_is_the_mean_of_the_batchs_valid_states_or_the_given_one(batch):
    student, _, student_mask, _ = batch
    centred = centred_states(student, student_mask, None)
    expected = student - student[student_mask].mean(dim=0)
    torch.testing.assert_close(centred[student_mask], expected[student_mask])
    given = states(6, seed=3)
    centred = centred_states(student, student_mask, given)
    torch.testing.assert_close(centred[student_mask], (student - given)[student_mask])
    assert centred[~student_mask].eq(0).all()


def test_a_given_centre_takes_the_batch_out_of_a_text(batch):
    student, _, student_mask, _ = batch
    together = centred_states(student, student_mask, states(6, seed=3))
    alone = centred_states(student[1:], student_mask[1:], states(6, seed=3))
    torch.testing.assert_close(together[1:], alone)


def test_euclidean_between_equal_states_is_zero_with_a_finite_gradient():
    # long vectors in float32: a distance from the norms would be 0.02 here
    student = 10 * states(1, 3, 768).float()
    teacher, valid = student.clone(), torch.ones(1, 3, dtype=torch.bool)
    cost = euclidean_cost(student.requires_grad_(), teacher, valid, valid)
    assert cost.diagonal(dim1=1, dim2=2).eq(0).all()
    (gradient,) = torch.autograd.grad(cost.diagonal(dim1=1, dim2=2).sum(), student)
    assert gradient.eq(0).all()


def test_attention_equals_the_published_form(batch):
    student, teacher, _, _ = batch
    expected = 1 - (student[0] @ teacher[0, :3].T / 6**0.5).softmax(dim=1)
    torch.testing.assert_close(attention_cost(*batch)[0, :, :3], expected)


def test_padding_is_zero_and_never_read(batch):
    student, teacher, student_mask, teacher_mask = batch
    valid = student_mask[:, :, None] & teacher_mask[:, None, :]
    clean = costs(*batch)
    student = student.masked_fill(~student_mask[:, :, None], torch.nan).requires_grad_()
    teacher = teacher.masked_fill(~teacher_mask[:, :, None], torch.nan).requires_grad_()
    for spoilt, expected in zip(
        costs(student, teacher, student_mask, teacher_mask), clean, strict=True
    ):
        torch.testing.assert_close(spoilt, expected)
        assert spoilt[~valid].eq(0).all()
        for gradient in torch.autograd.grad(spoilt.square().sum(), (student, teacher)):
            assert gradient.isfinite().all()


def test_equal_states_cost_nothing_on_the_diagonal(batch):
    student, _, student_mask, _ = batch
    cost = cosine_cost(student, student, student_mask, student_mask)
    assert cost.diagonal(dim1=1, dim2=2).abs().max() < 1e-12


def test_zero_states_and_empty_texts_are_finite():
    student = torch.zeros(1, 3, 4, requires_grad=True)
    teacher = torch.zeros(1, 2, 4)
    for mask in (torch.ones(1, 2, dtype=torch.bool), torch.zeros(1, 2, dtype=torch.bool)):
        for cost in costs(student, teacher, torch.ones(1, 3, dtype=torch.bool), mask):
            (gradient,) = torch.autograd.grad(cost.sum(), student)
            assert cost.isfinite().all()
            assert gradient.isfinite().all()


@pytest.mark.parametrize("form", range(4))
def test_gradients(batch, form):
    student, teacher, student_mask, teacher_mask = batch
    inputs = (student.requires_grad_(), teacher.requires_grad_())
    assert gradcheck(lambda s, t: costs(s, t, student_mask, teacher_mask)[form], inputs)
    cost = costs(*inputs, student_mask, teacher_mask)[form]
    for gradient in torch.autograd.grad(cost.square().sum(), inputs):
        assert gradient.abs().max() > 1e-3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast_are_finite(batch, dtype):
    student, teacher, student_mask, teacher_mask = batch
    with torch.autocast("cpu", dtype=torch.bfloat16):
        halves = costs(
            (200 * student).to(dtype), (200 * teacher).to(dtype), student_mask, teacher_mask
        )
    for cost in halves:
        assert cost.dtype == torch.float32
        assert cost.isfinite().all()


def test_wrong_inputs_are_named(batch):
    student, teacher, student_mask, teacher_mask = batch
    with pytest.raises(
        ValueError, match=r"teacher has shape \(2, 5, 4\), expected \(B=2, R=5, D=6\)"
    ):
        cosine_cost(student, teacher[..., :4], student_mask, teacher_mask)
    with pytest.raises(ValueError, match=r"teacher has shape \(2, 5, 4\)"):
        attention_cost(student, teacher[..., :4], student_mask, teacher_mask)
    with pytest.raises(ValueError, match=r"teacher_mask has shape \(2, 4\)"):
        attention_cost(student, teacher, student_mask, student_mask)
    with pytest.raises(ValueError, match=r"centre has shape \(5,\), expected \(D=6\)"):
        centred_states(student, student_mask, torch.zeros(5))
