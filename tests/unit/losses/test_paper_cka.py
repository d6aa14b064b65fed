"""CKA loss as the authors ran it."""

import pytest
import torch
from torch.autograd import gradcheck

from emo.losses import paper_cka_loss


def rows_of(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).softmax(dim=-1)


def published(student, teacher):
    """Direct form for one text and layer."""
    student, teacher = student - student.mean(dim=0), teacher - teacher.mean(dim=0)
    cross = (student.T @ teacher).norm()
    norms = ((student.T @ student).norm() + 1e-8) * ((teacher.T @ teacher).norm() + 1e-8)
    return 1 - cross / norms.sqrt()


@pytest.fixture
def batch():
    mask = torch.arange(6)[None, :] < torch.tensor([[6], [4], [2]])
    return rows_of(2, 3, 6, 40, seed=1), rows_of(2, 3, 6, 52, seed=2), mask


def test_equals_the_direct_form(batch):
    student, teacher, mask = batch
    expected = sum(
        published(student[layer, text, :count], teacher[layer, text, :count])
        for layer in range(2)
        for text, count in enumerate((6, 4, 2))
    )
    actual = paper_cka_loss(student, teacher, mask, batch_scale=False)
    torch.testing.assert_close(actual, expected, atol=1e-10, rtol=0)


def test_gradient_equals_the_direct_form(batch):
    student, teacher, _ = batch
    student = student[:1, :1].requires_grad_()
    whole = torch.ones(1, 6, dtype=torch.bool)
    actual = torch.autograd.grad(paper_cka_loss(student, teacher[:1, :1], whole, False), student)
    expected = torch.autograd.grad(published(student[0, 0], teacher[0, 0]), student)
    torch.testing.assert_close(actual, expected, atol=1e-10, rtol=1e-8)


def test_batch_scale_weighs_a_sum_like_four_texts(batch):
    student, teacher, mask = batch
    plain = paper_cka_loss(student, teacher, mask, batch_scale=False)
    torch.testing.assert_close(
        paper_cka_loss(student, teacher, mask, batch_scale=True), plain * 4 / 3
    )


def test_equal_rows_give_zero_and_rescaling_gives_zero(batch):
    student, _, mask = batch
    assert paper_cka_loss(student, 2 * student, mask, batch_scale=False).abs() < 1e-4


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_rows_give_exactly_one_and_no_gradient(count):
    student = rows_of(1, 1, 3, 5).requires_grad_()
    mask = (torch.arange(3) < count)[None, :]
    loss = paper_cka_loss(student, rows_of(1, 1, 3, 7, seed=1), mask, batch_scale=False)
    (gradient,) = torch.autograd.grad(loss, student)
    assert loss.item() == 1
    assert gradient.eq(0).all()


def test_constant_rows_have_a_finite_gradient():
    student = torch.full((1, 2, 4, 3), 0.1, requires_grad=True)
    teacher = rows_of(1, 2, 4, 3).float()
    loss = paper_cka_loss(student, teacher, torch.ones(2, 4, dtype=torch.bool), batch_scale=True)
    (gradient,) = torch.autograd.grad(loss, student)
    assert gradient.isfinite().all()


def test_padding_and_order_of_the_batch_change_nothing(batch):
    student, teacher, mask = batch
    plain = paper_cka_loss(student, teacher, mask, batch_scale=False)
    order = torch.tensor([2, 0, 1])
    shuffled = paper_cka_loss(student[:, order], teacher[:, order], mask[order], False)
    torch.testing.assert_close(shuffled, plain)
    spoilt = torch.nn.functional.pad(
        student.masked_fill(~mask[None, :, :, None], torch.nan), (0, 3)
    )
    torch.testing.assert_close(paper_cka_loss(spoilt, teacher, mask, False), plain)


def test_gradients(batch):
    student, teacher, mask = batch
    student, teacher = student[..., :4].clone(), teacher[..., :5].clone()
    inputs = (student.requires_grad_(), teacher.requires_grad_())
    assert gradcheck(lambda s, t: paper_cka_loss(s, t, mask, True), inputs)
    (gradient,) = torch.autograd.grad(paper_cka_loss(*inputs, mask, True), student)
    assert gradient.abs().max() > 1e-3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_finite(batch, dtype):
    student, teacher, mask = batch
    loss = paper_cka_loss(student.to(dtype), teacher.to(dtype), mask, batch_scale=True)
    assert loss.dtype == torch.float32
    assert loss.isfinite()


def test_wrong_shapes_are_named(batch):
    student, teacher, mask = batch
    with pytest.raises(ValueError, match=r"teacher_rows has shape \(1, 3, 6, 52\), expected \(k=2"):
        paper_cka_loss(student, teacher[:1], mask, batch_scale=False)
    with pytest.raises(ValueError, match=r"student_rows has shape \(3, 6, 40\)"):
        paper_cka_loss(student[0], teacher, mask, batch_scale=False)
