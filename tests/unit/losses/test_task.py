"""Task losses for labelled texts."""

import math

import pytest
import torch
from torch.autograd import gradcheck

from emo.losses import class_loss, score_loss


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


LABELS = torch.tensor([2, 0, 1, 2])
SCORES = torch.tensor([0.0, 5.0, 3.2, 1.7], dtype=torch.float64)


def test_class_loss_equals_a_slow_loop():
    logits, losses = normal(4, 3), []
    for row, label in zip(logits.tolist(), LABELS.tolist(), strict=True):
        total = sum(math.exp(value) for value in row)
        losses.append(-math.log(math.exp(row[label]) / total))
    assert class_loss(logits, LABELS).item() == pytest.approx(sum(losses) / 4)


def test_score_loss_equals_a_slow_loop():
    logits, losses = normal(4), []
    for logit, score in zip(logits.tolist(), SCORES.tolist(), strict=True):
        losses.append((5 / (1 + math.exp(-logit)) - score) ** 2)
    assert score_loss(logits, SCORES).item() == pytest.approx(sum(losses) / 4)


def test_order_of_the_batch_does_not_matter():
    logits = normal(4, 3)
    torch.testing.assert_close(
        class_loss(logits.flip(0), LABELS.flip(0)), class_loss(logits, LABELS)
    )
    torch.testing.assert_close(
        score_loss(logits[:, 0].flip(0), SCORES.flip(0)), score_loss(logits[:, 0], SCORES)
    )


def test_gradients():
    assert gradcheck(lambda z: class_loss(z, LABELS), normal(4, 3).requires_grad_())
    assert gradcheck(lambda z: score_loss(z, SCORES), normal(4).requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast_are_finite(dtype):
    logits = (200 * normal(4, 3)).to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        losses = class_loss(logits, LABELS), score_loss(logits[:, 0], SCORES.to(dtype))
    for loss in losses:
        assert loss.dtype == torch.float32
        assert loss.isfinite()
        assert torch.autograd.grad(loss, logits)[0].isfinite().all()


def test_wrong_inputs_are_named():
    logits = normal(4, 3)
    with pytest.raises(ValueError, match=r"labels has shape \(3,\), expected \(B=4\)"):
        class_loss(logits, LABELS[:3])
    with pytest.raises(ValueError, match=r"scores has shape \(4, 1\), expected \(B=4\)"):
        score_loss(logits[:, 0], SCORES[:, None])
    with pytest.raises(ValueError, match=r"logits has shape \(4, 3\), expected \(B\)"):
        score_loss(logits, SCORES)
    with pytest.raises(ValueError, match="labels must be int64, got torch.float64"):
        class_loss(logits, SCORES)
    with pytest.raises(ValueError, match=r"labels\[0\] is 2, expected 0 to 1"):
        class_loss(logits[:, :2], LABELS)
    with pytest.raises(ValueError, match=r"labels\[1\] is -100, expected 0 to 2"):
        class_loss(logits, torch.tensor([1, -100, 0, 0]))
    with pytest.raises(ValueError, match=r"scores\[2\] is nan, expected 0 to 5"):
        score_loss(logits[:, 0], torch.tensor([0.0, 5.0, torch.nan, 6.0]))
    with pytest.raises(ValueError, match=r"scores\[1\] is 5.5, expected 0 to 5"):
        score_loss(logits[:, 0], torch.tensor([0.0, 5.5, 1.0, 1.0]))
