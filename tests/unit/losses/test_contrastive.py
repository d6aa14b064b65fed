"""InfoNCE."""

import math

import pytest
import torch
from torch.autograd import gradcheck

from emo.losses import info_nce


def vectors(batch, width, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, width, generator=generator, dtype=torch.float64)


def test_by_hand():
    views = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    expected = math.log(1 + math.exp(-1 / 0.5))
    assert info_nce(views, views, temperature=0.5).item() == pytest.approx(expected)


def test_equals_a_slow_loop_in_one_direction():
    first, second = vectors(4, 6), vectors(4, 6, seed=1)
    losses = []
    for b in range(4):
        logits = torch.cosine_similarity(first[b : b + 1], second) / 0.05
        losses.append(logits.logsumexp(dim=0) - logits[b])
    expected = torch.stack(losses).mean()
    torch.testing.assert_close(info_nce(first, second, 0.05), expected)
    assert info_nce(second, first, 0.05).item() != pytest.approx(expected.item())


def test_order_of_the_batch_does_not_matter():
    first, second = vectors(5, 6), vectors(5, 6, seed=1)
    torch.testing.assert_close(
        info_nce(first.flip(0), second.flip(0), 0.1), info_nce(first, second, 0.1)
    )


def test_single_text_gives_zero_with_a_graph():
    first = vectors(1, 4).requires_grad_()
    loss = info_nce(first, vectors(1, 4, seed=1), 0.05)
    assert loss.item() == 0
    assert torch.autograd.grad(loss, first)[0].abs().max() < 1e-12


def test_gradients():
    inputs = (vectors(3, 4).requires_grad_(), vectors(3, 4, seed=1).requires_grad_())
    assert gradcheck(lambda first, second: info_nce(first, second, 0.2), inputs)
    assert torch.autograd.grad(info_nce(*inputs, 0.2), inputs[0])[0].abs().max() > 1e-3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast_are_finite(dtype):
    first = (300 * vectors(8, 64)).to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = info_nce(first, vectors(8, 64, seed=1).to(dtype), 0.05)
    assert loss.dtype == torch.float32
    assert loss.isfinite()
    assert torch.autograd.grad(loss, first)[0].isfinite().all()


def test_wrong_inputs_are_named():
    with pytest.raises(ValueError, match=r"second has shape \(3, 4\), expected \(B=2, D=4\)"):
        info_nce(vectors(2, 4), vectors(3, 4), 0.05)
    with pytest.raises(ValueError, match="temperature must be positive, got 0"):
        info_nce(vectors(2, 4), vectors(2, 4), 0)
