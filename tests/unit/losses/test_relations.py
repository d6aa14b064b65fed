"""Relations among token states."""

import pytest
import torch
from torch.autograd import gradcheck

from emo.losses import relation_loss

from .test_cka import song_cka

LENGTHS = [6, 3, 9, 4]


def problem(seed=0, dtype=torch.float64):
    """Texts of 6, 3, 9 and 4 pairs in any order; padding is NaN, and masks exclude a token each."""
    generator = torch.Generator().manual_seed(seed)
    student = torch.full((4, 11, 5), torch.nan, dtype=dtype)
    teacher = torch.full((4, 12, 7), torch.nan, dtype=dtype)
    student_mask, teacher_mask = (torch.zeros(4, n, dtype=torch.bool) for n in (11, 12))
    pairs = []
    for text, count in enumerate(LENGTHS):
        own, other = count + 1, count + 2
        student[text, :own] = torch.randn(own, 5, generator=generator, dtype=dtype)
        teacher[text, :other] = torch.randn(other, 7, generator=generator, dtype=dtype)
        student_mask[text, :own], teacher_mask[text, :other] = True, True
        places = torch.randperm(own, generator=generator), torch.randperm(other)
        student_mask[text, places[0][-1]] = False
        pairs += [(text, int(t), int(s)) for s, t in zip(*places, strict=False)]
    order = torch.randperm(len(pairs), generator=generator)
    return student, teacher, torch.tensor(pairs)[order], student_mask, teacher_mask


def rows_by_text(student, teacher, pairs, student_mask, teacher_mask):
    """Return the states of the pairs that count, text by text."""
    by_text = []
    for text in range(len(student)):
        own = [(t, s) for b, t, s in pairs.tolist() if b == text]
        own = [(t, s) for t, s in own if student_mask[text, s] and teacher_mask[text, t]]
        ours = torch.stack([student[text, s] for _, s in own])
        by_text.append((ours, torch.stack([teacher[text, t] for t, _ in own])))
    return by_text


def test_debiased_equals_the_textbook_form_text_by_text():
    given = problem()
    rows = rows_by_text(*given)
    assert [len(ours) for ours, _ in rows] == LENGTHS
    expected = [1 - song_cka(*both) for both in rows if len(both[0]) >= 4]
    result = relation_loss(*given, "debiased")
    torch.testing.assert_close(result.loss, torch.stack(expected).mean())
    assert (result.texts_used.item(), result.texts_skipped.item()) == (3, 1)


def test_pooled_equals_the_textbook_form_of_all_pairs():
    given = problem()
    ours, theirs = (torch.cat(side) for side in zip(*rows_by_text(*given), strict=True))
    result = relation_loss(*given, "pooled")
    torch.testing.assert_close(result.loss, 1 - song_cka(ours, theirs))
    assert (result.texts_used.item(), result.texts_skipped.item()) == (4, 0)


@pytest.mark.parametrize("estimator", ["debiased", "pooled"])
def test_order_and_padding_change_nothing(estimator):
    student, teacher, pairs, student_mask, teacher_mask = problem()
    usual = relation_loss(student, teacher, pairs, student_mask, teacher_mask, estimator).loss
    order = torch.tensor([2, 0, 3, 1])
    moved = pairs.flip(0)
    moved = torch.cat([order.argsort()[moved[:, :1]], moved[:, 1:]], dim=1)
    wide = torch.nn.functional.pad
    other = relation_loss(
        wide(student[order], (0, 3, 0, 2)),  # an empty column more, too
        wide(teacher[order], (0, 0, 0, 1)),
        moved,
        wide(student_mask[order], (0, 2)),
        wide(teacher_mask[order], (0, 1)),
        estimator,
    )
    torch.testing.assert_close(other.loss, usual)


@pytest.mark.parametrize("estimator", ["debiased", "pooled"])
def test_gradients(estimator):
    student, teacher, *rest = problem()
    given = tuple(states.nan_to_num(1.0).requires_grad_() for states in (student, teacher))
    assert gradcheck(lambda s, t: relation_loss(s, t, *rest, estimator).loss, given)
    gradient, _ = torch.autograd.grad(relation_loss(*given, *rest, estimator).loss, given)
    reached = gradient.abs().sum(dim=(1, 2)) > 0
    assert reached.tolist() == [True, estimator == "pooled", True, True]


@pytest.mark.parametrize("estimator", ["debiased", "pooled"])
@pytest.mark.parametrize("count", [0, 3])
def test_too_few_pairs_give_zero_with_a_graph(estimator, count):
    student, teacher, pairs, student_mask, teacher_mask = problem()
    student = student.nan_to_num().requires_grad_()
    few = pairs[(pairs[:, 0] == 1) & student_mask[pairs[:, 0], pairs[:, 2]]][:count]
    result = relation_loss(student, teacher, few, student_mask, teacher_mask, estimator)
    (gradient,) = torch.autograd.grad(result.loss, student)
    assert result.loss.item() == 0
    assert gradient.eq(0).all()
    assert (result.texts_used.item(), result.texts_skipped.item()) == (0, 4)


def test_rotated_spaces_have_equal_relations_and_unrelated_ones_none():
    student, _, pairs, student_mask, _ = problem(dtype=torch.float32)
    rotation = torch.linalg.qr(torch.randn(5, 5)).Q
    pairs = torch.stack([pairs[:, 0], pairs[:, 2], pairs[:, 2]], dim=1)
    masks = (student_mask, student_mask)
    for estimator in ("debiased", "pooled"):
        result = relation_loss(student, 3 * student @ rotation, pairs, *masks, estimator)
        torch.testing.assert_close(result.loss, torch.tensor(0.0), atol=1e-5, rtol=0)


def test_an_unknown_estimator_is_refused():
    with pytest.raises(ValueError, match="estimator is 'biased', expected"):
        relation_loss(*problem(), "biased")
