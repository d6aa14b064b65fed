"""The loss of annotated similarity."""

import pytest
import torch
from torch.autograd import gradcheck

from emo.losses import similarity_loss

SCORES = torch.tensor([0.0, 5.0, 3.2], dtype=torch.float64)


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_it_equals_a_slow_loop():
    first, second, losses = normal(3, 4), normal(3, 4, seed=1), []
    for u, v, score in zip(first, second, SCORES.tolist(), strict=True):
        cosine = torch.nn.functional.cosine_similarity(u, v, dim=0).item()
        losses.append((cosine - score / 5) ** 2)
    assert similarity_loss(first, second, SCORES).item() == pytest.approx(sum(losses) / 3)


def test_order_of_the_batch_sides_and_lengths_do_not_matter():
    first, second = normal(3, 4), normal(3, 4, seed=1)
    loss = similarity_loss(first, second, SCORES)
    turned = similarity_loss(first.flip(0), second.flip(0), SCORES.flip(0))
    torch.testing.assert_close(turned, loss)
    torch.testing.assert_close(similarity_loss(3 * second, first / 2, SCORES), loss)


def test_equal_texts_of_full_similarity_cost_nothing():
    vectors = normal(2, 4)
    assert similarity_loss(vectors, vectors, torch.tensor([5.0, 5.0])).item() == pytest.approx(0.0)


def test_gradients():
    first, second = normal(3, 4).requires_grad_(), normal(3, 4, seed=1).requires_grad_()
    assert gradcheck(lambda u, v: similarity_loss(u, v, SCORES), (first, second))
    similarity_loss(first, second, SCORES).backward()
    assert first.grad.abs().sum() > 0
    assert second.grad.abs().sum() > 0


@pytest.mark.parametrize("score", [-0.1, 5.1, float("nan")])
def test_scores_out_of_range_are_refused(score):
    """A column rated 0 to 1 or 0 to 100 would be learned as something else."""
    scores = torch.tensor([1.0, score, 2.0])
    with pytest.raises(ValueError, match=r"scores\[1\] is .*, expected 0 to 5"):
        similarity_loss(normal(3, 4), normal(3, 4), scores)


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="second has shape"):
        similarity_loss(normal(3, 4), normal(3, 5), SCORES)
    with pytest.raises(ValueError, match="scores has shape"):
        similarity_loss(normal(3, 4), normal(3, 4), SCORES[:2])


def test_half_precision_is_widened():
    first, second = normal(3, 4), normal(3, 4, seed=1)
    half = similarity_loss(first.half(), second.half(), SCORES.half())
    assert half.dtype == torch.float32
    full = similarity_loss(first, second, SCORES)
    torch.testing.assert_close(half.double(), full, atol=2e-3, rtol=0)
