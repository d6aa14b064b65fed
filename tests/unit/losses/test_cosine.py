"""Unit vectors."""

import torch
from torch.autograd import gradcheck

from emo.losses.cosine import MINIMUM_NORM, unit_vectors


def test_unit_vectors_equal_division_by_the_norm():
    states = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(unit_vectors(states), states / states.norm(dim=2, keepdim=True))
    assert gradcheck(unit_vectors, states.requires_grad_())


def test_vectors_below_the_minimum_become_zero_without_gradient():
    states = torch.tensor([[0.0, 0.0], [MINIMUM_NORM / 2, 0.0], [3.0, 4.0]], requires_grad=True)
    units = unit_vectors(states)
    (gradient,) = torch.autograd.grad(units[:, 1].sum(), states)
    assert units[:2].eq(0).all()
    assert gradient[:2].eq(0).all()
    assert gradient[2].abs().max() > 0
