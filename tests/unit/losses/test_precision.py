"""Precision that losses compute in."""

import pytest
import torch

from emo.losses.precision import in_full_precision


@in_full_precision
def product(first, second, mask):
    assert mask.dtype == torch.bool
    return first @ second


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (torch.float16, torch.bfloat16, torch.float32),
        (torch.float32, torch.float32, torch.float32),
        (torch.float64, torch.float32, torch.float64),
    ],
)
def test_arguments_are_widened_together(first, second, expected):
    mask = torch.ones(2, dtype=torch.bool)
    result = product(torch.eye(2, dtype=first), second=torch.eye(2, dtype=second), mask=mask)
    assert result.dtype == expected


def test_autocast_does_not_reach_inside_and_comes_back():
    mask = torch.ones(2, dtype=torch.bool)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert product(torch.eye(2), torch.eye(2), mask).dtype == torch.float32
        assert (torch.eye(2) @ torch.eye(2)).dtype == torch.bfloat16


def test_gradient_returns_in_the_precision_of_the_input():
    first = torch.ones(2, 2, dtype=torch.float16, requires_grad=True)
    product(first, torch.eye(2), torch.ones(2, dtype=torch.bool)).sum().backward()
    assert first.grad.dtype == torch.float16
