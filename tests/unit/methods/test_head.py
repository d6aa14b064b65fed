import numpy as np
import torch

from emo.methods import fit_head
from emo.methods.head import RIDGE


def test_it_is_the_least_squares_solution():
    """Against numpy's solver; the ridge moves it by less than it weighs."""
    generator = torch.Generator().manual_seed(0)
    student = torch.randn(200, 6, generator=generator) + 3.0
    teacher = student @ torch.randn(6, 4, generator=generator) - 1.0
    teacher += 0.1 * torch.randn(200, 4, generator=generator)
    head = fit_head(student, teacher)
    design = np.hstack([student.double().numpy(), np.ones((200, 1))])
    solution = np.linalg.lstsq(design, teacher.double().numpy(), rcond=None)[0]
    np.testing.assert_allclose(head.weight.detach().numpy(), solution[:-1].T, atol=10 * RIDGE)
    np.testing.assert_allclose(head.bias.detach().numpy(), solution[-1], atol=50 * RIDGE)
    assert head.weight.dtype == torch.float32


def test_it_is_the_ridge_solution():
    """The same against numpy with the ridge written as extra rows, to float32's precision."""
    generator = torch.Generator().manual_seed(1)
    student = torch.randn(30, 5, generator=generator)
    teacher = torch.randn(30, 3, generator=generator)
    head = fit_head(student, teacher)
    centred = student.double().numpy() - student.double().numpy().mean(axis=0)
    target = teacher.double().numpy() - teacher.double().numpy().mean(axis=0)
    ridge = RIDGE * np.square(centred).sum() / 5
    design = np.vstack([centred, np.sqrt(ridge) * np.eye(5)])
    weight = np.linalg.lstsq(design, np.vstack([target, np.zeros((5, 3))]), rcond=None)[0]
    np.testing.assert_allclose(head.weight.detach().numpy(), weight.T, atol=1e-6)


def test_fewer_texts_than_dimensions_stay_finite():
    """A tiny text set has no unique solution; an unstable one would throw the student far off."""
    head = fit_head(torch.randn(4, 16), torch.randn(4, 8))
    assert torch.isfinite(head.weight).all()
    assert head.weight.abs().max() < 100


def test_it_can_be_trained():
    head = fit_head(torch.randn(20, 4), torch.randn(20, 3))
    assert all(parameter.requires_grad for parameter in head.parameters())
