"""Losses on pooled vectors."""

import pytest
import torch
from scipy.spatial.distance import cdist
from torch.autograd import gradcheck

from emo.losses import cosine_loss, relational_loss


def vectors(batch, width, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, width, generator=generator, dtype=torch.float64)


def test_cosine_by_hand():
    student = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
    teacher = torch.tensor([[2.0, 0.0], [0.0, -1.0]])
    assert cosine_loss(student, teacher).item() == pytest.approx(1.0)


def test_cosine_equals_scipy():
    student, teacher = vectors(5, 4), vectors(5, 4, seed=1)
    expected = cdist(student, teacher, "cosine").diagonal().mean()
    assert cosine_loss(student, teacher).item() == pytest.approx(expected)


def test_relational_equals_a_slow_loop():
    student, teacher = vectors(5, 4), vectors(5, 7, seed=1)
    student_cosine, teacher_cosine = (1 - cdist(x, x, "cosine") for x in (student, teacher))
    difference = (student_cosine - teacher_cosine) ** 2
    expected = sum(difference[b, c] for b in range(5) for c in range(5) if b != c) / 20
    assert relational_loss(student, teacher).item() == pytest.approx(expected)


@pytest.mark.parametrize("loss", [cosine_loss, relational_loss])
def test_equal_vectors_cost_nothing_and_order_does_not_matter(loss):
    student, teacher = vectors(6, 5), vectors(6, 5, seed=1)
    assert loss(student, 2 * student).abs() < 1e-12
    torch.testing.assert_close(loss(student.flip(0), teacher.flip(0)), loss(student, teacher))


def test_relational_of_one_text_is_zero_with_a_graph():
    student = vectors(1, 5).requires_grad_()
    loss = relational_loss(student, vectors(1, 7))
    (gradient,) = torch.autograd.grad(loss, student)
    assert loss.item() == 0
    assert gradient.eq(0).all()


def test_relational_of_two_texts_is_finite():
    assert relational_loss(vectors(2, 5), vectors(2, 7)).isfinite()


@pytest.mark.parametrize("loss", [cosine_loss, relational_loss])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_zero_vectors_and_half_precision_are_finite(loss, dtype):
    student = torch.zeros(3, 4, dtype=dtype)
    student[0, 0] = 0.5
    student.requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(student, vectors(3, 4).to(dtype))
    (gradient,) = torch.autograd.grad(value, student)
    assert value.dtype == torch.float32
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert gradient[1:].eq(0).all()


@pytest.mark.parametrize("loss", [cosine_loss, relational_loss])
def test_gradients(loss):
    inputs = (vectors(3, 4).requires_grad_(), vectors(3, 4, seed=1).requires_grad_())
    assert gradcheck(loss, inputs)
    assert torch.autograd.grad(loss(*inputs), inputs[0])[0].abs().max() > 1e-3


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match=r"teacher has shape \(3, 5\), expected \(B=3, D=4\)"):
        cosine_loss(vectors(3, 4), vectors(3, 5))
    with pytest.raises(ValueError, match=r"teacher has shape \(2, 5\), expected \(B=3, D_t=5\)"):
        relational_loss(vectors(3, 4), vectors(2, 5))
    with pytest.raises(ValueError, match="no dimension may be empty"):
        cosine_loss(vectors(0, 4), vectors(0, 4))
