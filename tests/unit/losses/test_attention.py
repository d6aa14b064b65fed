"""Estimators and reductions of the attention loss."""

import pytest
import torch
from torch.autograd import gradcheck

from emo.losses import MINIMUM_ROWS, attention_loss, cka, pooled_cka, root_cka

ESTIMATORS = ["root", "biased", "debiased", "pooled"]
REDUCTIONS = ["mean", "sum", "sum-4"]
COUNTS = (6, 5, 4, 3, 1, 0)


def rows_of(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).softmax(dim=-1)


@pytest.fixture
def batch():
    mask = torch.arange(6)[None, :] < torch.tensor(COUNTS)[:, None]
    return rows_of(3, 6, 6, 9, seed=1), rows_of(3, 6, 6, 7, seed=2), mask


def one_by_one(student, teacher, estimator):
    """1 - CKA of each text with enough rows alone, cut to its rows, layer by layer."""
    losses = []
    for layer in range(len(student)):
        for text, count in enumerate(COUNTS):
            if count >= MINIMUM_ROWS[estimator]:
                pair = student[layer, [text], :count], teacher[layer, [text], :count]
                whole = torch.ones(1, count, dtype=torch.bool)
                if estimator == "root":
                    losses.append(1 - root_cka(*pair, whole))
                else:
                    losses.append(1 - cka(*pair, whole, estimator))
    return torch.cat(losses)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(("estimator", "used"), [("root", 4), ("biased", 4), ("debiased", 3)])
def test_reduces_over_layers_and_texts_with_enough_rows(batch, estimator, used, reduction):
    student, teacher, mask = batch
    losses = one_by_one(student, teacher, estimator)
    # as published, the two texts with one row or none add 1 per layer
    total = losses.sum() + (2 * 3 if estimator == "root" else 0)
    expected = {"mean": losses.mean(), "sum": total, "sum-4": total * 4 / 6}[reduction]
    result = attention_loss(*batch, estimator, reduction)
    torch.testing.assert_close(result.loss, expected, atol=1e-10, rtol=0)
    assert (result.texts_used.item(), result.texts_skipped.item()) == (used, 6 - used)


def test_pooled_stands_for_each_text_with_enough_rows(batch):
    values = 1 - pooled_cka(*batch)
    losses = {reduction: attention_loss(*batch, "pooled", reduction) for reduction in REDUCTIONS}
    torch.testing.assert_close(losses["mean"].loss, values.mean())
    torch.testing.assert_close(losses["sum"].loss, 3 * values.sum())
    torch.testing.assert_close(losses["sum-4"].loss, 3 * values.sum() * 4 / 6)
    assert losses["sum"].texts_used.item() == 3
    assert losses["sum"].texts_skipped.item() == 3


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_equal_rows_cost_nothing(batch, estimator):
    student, _, mask = batch
    loss = attention_loss(student[:, :3], 2 * student[:, :3], mask[:3], estimator, "sum").loss
    assert loss.abs() < 1e-4


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_padding_and_batch_order_change_nothing(batch, estimator):
    student, teacher, mask = batch
    plain = attention_loss(*batch, estimator, "sum").loss
    order = torch.tensor([4, 2, 0, 5, 1, 3])
    spoilt = student.masked_fill(~mask[None, :, :, None], torch.nan)[:, order]
    spoilt = torch.nn.functional.pad(spoilt, (0, 3, 0, 2), value=0.0)
    wide = torch.nn.functional.pad(teacher[:, order], (0, 0, 0, 2), value=torch.nan)
    row_mask = torch.nn.functional.pad(mask[order], (0, 2))
    shuffled = attention_loss(spoilt, wide, row_mask, estimator, "sum").loss
    torch.testing.assert_close(shuffled, plain)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_without_usable_text_there_is_a_graph_but_no_gradient(estimator, count, reduction):
    student = rows_of(2, 2, 3, 4).requires_grad_()
    mask = (torch.arange(3) < count).expand(2, 3)
    result = attention_loss(student, rows_of(2, 2, 3, 5, seed=1), mask, estimator, reduction)
    as_published = estimator == "root" and reduction != "mean"
    assert result.loss.item() == ({"sum": 4, "sum-4": 8}[reduction] if as_published else 0)
    assert result.texts_skipped.item() == 2
    (gradient,) = torch.autograd.grad(result.loss, student)
    assert gradient.eq(0).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_gradients(batch, estimator):
    student, teacher, mask = batch
    inputs = (student[:2, :, :, :4].clone(), teacher[:2, :, :, :5].clone())
    inputs = tuple(rows.requires_grad_() for rows in inputs)
    assert gradcheck(lambda s, t: attention_loss(s, t, mask, estimator, "sum-4").loss, inputs)
    loss = attention_loss(*inputs, mask, estimator, "mean").loss
    (gradient,) = torch.autograd.grad(loss, inputs[0])
    assert gradient.abs().max() > 1e-3


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast_are_finite(batch, estimator, dtype):
    student, teacher, mask = batch
    student = student.to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = attention_loss(student, teacher.to(dtype), mask, estimator, "mean").loss
    (gradient,) = torch.autograd.grad(loss, student)
    assert loss.dtype == torch.float32
    assert gradient.isfinite().all()
    assert gradient.abs().max() > 0


def test_wrong_inputs_are_named(batch):
    student, teacher, mask = batch
    with pytest.raises(ValueError, match=r"teacher_rows has shape \(1, 6, 6, 7\), expected \(k=3"):
        attention_loss(student, teacher[:1], mask, "root", "sum")
    with pytest.raises(ValueError, match=r"student_rows has shape \(6, 6, 9\)"):
        attention_loss(student[0], teacher, mask, "root", "sum")
    with pytest.raises(ValueError, match="row_mask must be boolean"):
        attention_loss(student, teacher, mask.long(), "biased", "sum")
    with pytest.raises(ValueError, match=r"estimator is 'song', expected one of \['root', 'bias"):
        attention_loss(*batch, "song", "sum")
    with pytest.raises(ValueError, match=r"reduction is 'max', expected one of \['sum', 'sum-4'"):
        attention_loss(*batch, "root", "max")
