"""The distance between class probabilities."""

import math

import pytest
import torch
from scipy.special import log_softmax, rel_entr
from torch.autograd import gradcheck

from emo.losses import logit_loss


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


STUDENT, TEACHER = normal(5, 4), 2 * normal(5, 4, seed=1)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_it_is_the_divergence_of_the_student_from_the_teacher(temperature):
    """KL(teacher ‖ student): the other way round is another number."""
    student = torch.softmax(STUDENT / temperature, dim=-1).numpy()
    teacher = torch.softmax(TEACHER / temperature, dim=-1).numpy()
    expected = temperature**2 * rel_entr(teacher, student).sum(axis=1).mean()
    assert logit_loss(STUDENT, TEACHER, temperature).item() == pytest.approx(expected)
    other_way = temperature**2 * rel_entr(student, teacher).sum(axis=1).mean()
    assert expected != pytest.approx(other_way, rel=1e-2)


def test_it_equals_a_slow_loop():
    rows = []
    for student, teacher in zip(STUDENT.numpy() / 2, TEACHER.numpy() / 2, strict=True):
        p, q = log_softmax(teacher), log_softmax(student)
        rows.append(sum(math.exp(a) * (a - b) for a, b in zip(p, q, strict=True)))
    assert logit_loss(STUDENT, TEACHER, 2.0).item() == pytest.approx(4 * sum(rows) / 5)


def test_shifted_logits_are_the_same_probabilities():
    assert logit_loss(TEACHER + 3.0, TEACHER, 2.0).item() == pytest.approx(0.0, abs=1e-12)


def test_at_high_temperature_it_is_half_the_squared_error_of_centred_logits():
    """Hinton et al. 2015, for logits of mean zero: what the factor is for."""
    student, teacher = (x - x.mean(dim=1, keepdim=True) for x in (STUDENT, TEACHER))
    expected = (student - teacher).square().sum(dim=1).mean() / (2 * 4)
    torch.testing.assert_close(logit_loss(student, teacher, 1e4), expected, rtol=1e-3, atol=0.0)


def test_gradient():
    assert gradcheck(lambda z: logit_loss(z, TEACHER, 2.0), STUDENT.clone().requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast_are_finite(dtype):
    student = (200 * STUDENT).to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = logit_loss(student, (200 * TEACHER).to(dtype), 1.0)
    assert loss.dtype == torch.float32
    assert loss.isfinite()
    assert torch.autograd.grad(loss, student)[0].isfinite().all()


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="teacher"):
        logit_loss(STUDENT, TEACHER[:, :3], 1.0)
    for temperature in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=f"above 0, got {temperature}"):
            logit_loss(STUDENT, TEACHER, temperature)
