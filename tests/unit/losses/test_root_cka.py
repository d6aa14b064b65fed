"""CKA as the authors ran it."""

import pytest
import torch
from torch.autograd import gradcheck

from emo.losses import root_cka


def rows_of(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).softmax(dim=-1)


def published(student, teacher):
    """Direct form for one text and layer."""
    student, teacher = student - student.mean(dim=0), teacher - teacher.mean(dim=0)
    cross = (student.T @ teacher).norm()
    norms = ((student.T @ student).norm() + 1e-8) * ((teacher.T @ teacher).norm() + 1e-8)
    return cross / norms.sqrt()


@pytest.fixture
def batch():
    mask = torch.arange(6)[None, :] < torch.tensor([[6], [4], [2]])
    return rows_of(3, 6, 40, seed=1), rows_of(3, 6, 52, seed=2), mask


def test_equals_the_direct_form(batch):
    student, teacher, mask = batch
    expected = torch.stack(
        [published(student[i, :count], teacher[i, :count]) for i, count in enumerate((6, 4, 2))]
    )
    torch.testing.assert_close(root_cka(*batch), expected, atol=1e-10, rtol=0)


def test_gradient_equals_the_direct_form(batch):
    student, teacher, _ = batch
    student = student[:1].requires_grad_()
    whole = torch.ones(1, 6, dtype=torch.bool)
    actual = torch.autograd.grad(root_cka(student, teacher[:1], whole), student)
    expected = torch.autograd.grad(published(student[0], teacher[0]), student)
    torch.testing.assert_close(actual, expected, atol=1e-10, rtol=1e-8)


def test_equal_and_rotated_rows_have_cka_one(batch):
    student, _, mask = batch
    rotation = torch.linalg.qr(rows_of(40, 40, seed=3)).Q
    for teacher in (student, 2 * student @ rotation):
        similarity = root_cka(student, teacher, mask)
        assert (1 - similarity).abs().max() < 1e-4  # the offsets


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_rows_give_exactly_zero_and_no_gradient(count):
    student = rows_of(1, 3, 5).requires_grad_()
    mask = (torch.arange(3) < count)[None, :]
    similarity = root_cka(student, rows_of(1, 3, 7, seed=1), mask)
    (gradient,) = torch.autograd.grad(similarity.sum(), student)
    assert similarity.item() == 0
    assert gradient.eq(0).all()


def test_constant_rows_have_a_finite_gradient():
    student = torch.full((2, 4, 3), 0.1, requires_grad=True)
    teacher = rows_of(2, 4, 3).float()
    similarity = root_cka(student, teacher, torch.ones(2, 4, dtype=torch.bool))
    (gradient,) = torch.autograd.grad(similarity.sum(), student)
    assert gradient.isfinite().all()


def test_padding_and_order_of_the_batch_change_nothing(batch):
    student, teacher, mask = batch
    plain = root_cka(*batch)
    order = torch.tensor([2, 0, 1])
    shuffled = root_cka(student[order], teacher[order], mask[order])
    torch.testing.assert_close(shuffled, plain[order])
    spoilt = torch.nn.functional.pad(student.masked_fill(~mask[:, :, None], torch.nan), (0, 3))
    torch.testing.assert_close(root_cka(spoilt, teacher, mask), plain)


def test_gradients(batch):
    student, teacher, mask = batch
    inputs = (student[..., :4].clone().requires_grad_(), teacher[..., :5].clone().requires_grad_())
    assert gradcheck(lambda s, t: root_cka(s, t, mask), inputs)
    (gradient,) = torch.autograd.grad(root_cka(*inputs, mask).sum(), inputs[0])
    assert gradient.abs().max() > 1e-3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float64(batch, dtype):
    student, teacher, mask = (batch[0].to(dtype), batch[1].to(dtype), batch[2])
    similarity = root_cka(student, teacher, mask)
    assert similarity.dtype == torch.float32
    expected = root_cka(student.double(), teacher.double(), mask)
    torch.testing.assert_close(similarity.double(), expected, atol=1e-7, rtol=0)


def test_wrong_inputs_are_named(batch):
    student, teacher, mask = batch
    with pytest.raises(ValueError, match=r"teacher_rows has shape \(1, 6, 52\), expected \(B=3"):
        root_cka(student, teacher[:1], mask)
    with pytest.raises(ValueError, match="row_mask must be boolean"):
        root_cka(student, teacher, mask.long())
