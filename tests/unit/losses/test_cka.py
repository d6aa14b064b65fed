"""Linear CKA, per text and over a batch."""

import pytest
import torch
from torch.autograd import gradcheck

from emo.losses import cka, pooled_cka

ESTIMATORS = ["biased", "debiased"]


def rows_of(batch, count, width, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, count, width, generator=generator, dtype=dtype).softmax(dim=2)


def full(batch, count):
    return torch.ones(batch, count, dtype=torch.bool)


def direct_cka(student, teacher):
    """Kornblith's feature form of one text."""
    student, teacher = student - student.mean(dim=0), teacher - teacher.mean(dim=0)
    cross = (student.T @ teacher).square().sum()
    return cross / ((student.T @ student).norm() * (teacher.T @ teacher).norm())


def song_hsic(first, second):
    """HSIC_1 of Song et al. 2012, equation 5, from uncentred Gram matrices."""
    n = len(first)
    first, second = first - first.diag().diag(), second - second.diag().diag()
    ones = torch.ones(n, dtype=first.dtype)
    value = (first @ second).trace()
    value = value + (ones @ first @ ones) * (ones @ second @ ones) / ((n - 1) * (n - 2))
    value = value - 2 * (ones @ first @ second @ ones) / (n - 2)
    return value / (n * (n - 3))


def song_cka(student, teacher):
    student, teacher = student @ student.T, teacher @ teacher.T
    norm = (song_hsic(student, student) * song_hsic(teacher, teacher)).sqrt()
    return song_hsic(student, teacher) / norm


def test_biased_by_hand():
    # centred rows are +-(0.5, -0.5) and +-(0.5, 0): one direction each, so CKA is 1
    student = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    teacher = torch.tensor([[[1.0, 0.0], [0.0, 0.0]]])
    torch.testing.assert_close(cka(student, teacher, full(1, 2), "biased"), torch.ones(1))


@pytest.mark.parametrize(("estimator", "oracle"), [("biased", direct_cka), ("debiased", song_cka)])
def test_equals_the_textbook_form(estimator, oracle):
    student, teacher = rows_of(3, 6, 9, seed=1), rows_of(3, 6, 11, seed=2)
    expected = torch.stack([oracle(*pair) for pair in zip(student, teacher, strict=True)])
    actual = cka(student, teacher, full(3, 6), estimator)
    torch.testing.assert_close(actual, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_equal_and_rotated_rows_have_cka_one(estimator):
    student = rows_of(2, 7, 5)
    rotation = torch.linalg.qr(rows_of(1, 5, 5, seed=3)[0]).Q
    for teacher in (student, 3 * student @ rotation + 0.25):
        similarity = cka(student, teacher, full(2, 7), estimator)
        torch.testing.assert_close(similarity, torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_padding_batch_order_and_batch_size_change_nothing(estimator):
    student, teacher = rows_of(3, 8, 6, seed=4), rows_of(3, 8, 7, seed=5)
    mask = torch.arange(8)[None, :] < torch.tensor([[8], [5], [4]])
    student[~mask] = torch.nan
    wide = torch.nn.functional.pad(student, (0, 4))
    together = cka(wide, teacher, mask, estimator)
    for text, count in enumerate((8, 5, 4)):
        alone = cka(
            student[text : text + 1, :count],
            teacher[text : text + 1, :count],
            full(1, count),
            estimator,
        )
        torch.testing.assert_close(together[text : text + 1], alone)
    order = torch.tensor([2, 0, 1])
    shuffled = cka(wide[order], teacher[order], mask[order], estimator)
    torch.testing.assert_close(shuffled, together[order])


def test_biased_saturates_on_few_rows_where_debiased_does_not():
    student, teacher = rows_of(300, 5, 40, seed=6), rows_of(300, 5, 52, seed=7)
    # the root is the paper's form
    assert cka(student, teacher, full(300, 5), "biased").sqrt().mean() > 0.9
    assert cka(student, teacher, full(300, 5), "debiased").mean().abs() < 0.1


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_constant_rows_are_finite(estimator, dtype):
    student = torch.full((2, 4, 3), 0.1, dtype=dtype, requires_grad=True)
    similarity = cka(student, rows_of(2, 4, 6, dtype=dtype), full(2, 4), estimator)
    (gradient,) = torch.autograd.grad(similarity.sum(), student)
    assert similarity.eq(0).all()
    assert gradient.eq(0).all()


@pytest.mark.parametrize(("estimator", "fewest"), [("biased", 2), ("debiased", 4)])
def test_texts_with_too_few_rows_are_zero_without_gradient(estimator, fewest):
    student = rows_of(4, 6, 5, seed=1).requires_grad_()
    mask = torch.arange(6)[None, :] < torch.tensor([[fewest], [fewest - 1], [fewest // 2], [0]])
    similarity = cka(student, rows_of(4, 6, 5, seed=2), mask, estimator)
    (gradient,) = torch.autograd.grad(similarity.sum(), student)
    assert similarity[0] != 0
    assert similarity[1:].eq(0).all()
    assert gradient[1:].eq(0).all()


def test_debiased_is_finite_for_equidistant_and_near_constant_rows():
    for student in (torch.eye(4)[None], 0.25 + 1e-6 * torch.randn(1, 4, 4)):
        student.requires_grad_()
        similarity = cka(student, rows_of(1, 4, 5, dtype=torch.float32), full(1, 4), "debiased")
        (gradient,) = torch.autograd.grad(similarity.sum(), student)
        assert similarity.abs() <= 1 + 1e-5
        assert gradient.isfinite().all()


def test_debiased_stays_within_bounds_at_four_rows():
    similarity = cka(
        rows_of(500, 4, 9, seed=8), rows_of(500, 4, 9, seed=9), full(500, 4), "debiased"
    )
    assert similarity.isfinite().all()
    assert similarity.abs().max() <= 1 + 1e-9
    assert similarity.min() < -0.5


def summed_hsic(student, teacher, counts):
    """Pooled CKA of one layer from HSIC_1 by its sum formula, text by text."""
    sums = torch.zeros(3, dtype=torch.float64)
    for text, count in enumerate(counts):
        first, second = student[text, :count], teacher[text, :count]
        first, second = first @ first.T, second @ second.T
        sums += torch.stack(
            [song_hsic(first, second), song_hsic(first, first), song_hsic(second, second)]
        )
    return sums[0] / (sums[1] * sums[2]).sqrt()


def layers_of(layers, *shape, seed=0):
    return torch.stack([rows_of(*shape, seed=seed + 10 * layer) for layer in range(layers)])


def test_pooled_equals_summed_hsic():
    student, teacher = layers_of(2, 4, 6, 5, seed=1), layers_of(2, 4, 6, 8, seed=2)
    mask = torch.arange(6)[None, :] < torch.tensor([[6], [5], [4], [2]])
    expected = torch.stack(
        [summed_hsic(*pair, (6, 5, 4)) for pair in zip(student, teacher, strict=True)]
    )
    actual = pooled_cka(student, teacher, mask)
    torch.testing.assert_close(actual, expected, atol=1e-10, rtol=0)


def test_pooled_of_one_text_is_its_own_debiased_cka():
    student, teacher = rows_of(1, 5, 6, seed=1), rows_of(1, 5, 6, seed=2)
    torch.testing.assert_close(
        pooled_cka(student[None], teacher[None], full(1, 5)),
        cka(student, teacher, full(1, 5), "debiased"),
    )


def test_pooled_of_equal_and_rotated_rows_is_one():
    student = layers_of(2, 3, 7, 5)
    rotation = torch.linalg.qr(rows_of(1, 5, 5, seed=3)[0]).Q
    for teacher in (student, 3 * student @ rotation + 0.25):
        similarity = pooled_cka(student, teacher, full(3, 7))
        torch.testing.assert_close(similarity, torch.ones(2, dtype=torch.float64))


def test_pooled_is_near_zero_for_unrelated_rows():
    similarity = pooled_cka(
        rows_of(300, 5, 40, seed=6)[None], rows_of(300, 5, 52, seed=7)[None], full(300, 5)
    )
    assert similarity.abs() < 0.1


def test_pooled_ignores_padding_order_and_texts_with_too_few_rows():
    student, teacher = layers_of(2, 4, 8, 6, seed=4), layers_of(2, 4, 8, 7, seed=5)
    mask = torch.arange(8)[None, :] < torch.tensor([[8], [5], [4], [3]])
    expected = pooled_cka(student[:, :3], teacher[:, :3], mask[:3])
    student = student.masked_fill(~mask[None, :, :, None], torch.nan)
    order = torch.tensor([2, 3, 0, 1])
    wide = torch.nn.functional.pad(student, (0, 4))[:, order]
    torch.testing.assert_close(pooled_cka(wide, teacher[:, order], mask[order]), expected)


def test_pooled_of_constant_rows_and_of_no_usable_text_is_zero_without_gradient():
    constant = torch.full((1, 2, 4, 3), 0.1, requires_grad=True)
    few = layers_of(1, 2, 4, 3, seed=1).float().requires_grad_()
    teacher = layers_of(1, 2, 4, 6).float()
    for student, mask in ((constant, full(2, 4)), (few, full(2, 4) & (torch.arange(4) < 3))):
        similarity = pooled_cka(student, teacher, mask)
        (gradient,) = torch.autograd.grad(similarity.sum(), student)
        assert similarity.eq(0).all()
        assert gradient.eq(0).all()


def test_gradients():
    student = rows_of(2, 5, 4, seed=1).requires_grad_()
    teacher = rows_of(2, 5, 6, seed=2).requires_grad_()
    mask = torch.arange(5)[None, :] < torch.tensor([[5], [4]])
    for value in (
        lambda s, t: cka(s, t, mask, "biased"),
        lambda s, t: cka(s, t, mask, "debiased"),
        lambda s, t: pooled_cka(s[None], t[None], mask),
    ):
        assert gradcheck(value, (student, teacher))
        (gradient,) = torch.autograd.grad(value(student, teacher).sum(), student)
        assert gradient.abs().max() > 1e-3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast_are_finite(dtype):
    student = rows_of(2, 6, 128, dtype=torch.float32).to(dtype).requires_grad_()
    teacher = rows_of(2, 6, 90).to(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        results = [
            cka(student, teacher, full(2, 6), "debiased"),
            pooled_cka(student[None], teacher[None], full(2, 6)),
        ]
    for result in results:
        (gradient,) = torch.autograd.grad(result.sum(), student)
        assert result.dtype == torch.float32
        assert gradient.isfinite().all()
        assert gradient.abs().max() > 0


def test_wrong_inputs_are_named():
    rows = rows_of(2, 4, 5)
    with pytest.raises(
        ValueError, match=r"teacher_rows has shape \(2, 3, 5\), expected \(B=2, m=4"
    ):
        cka(rows, rows[:, :3], full(2, 4), "biased")
    with pytest.raises(ValueError, match=r"row_mask has shape \(1, 4\), expected \(B=2, m=4\)"):
        pooled_cka(rows[None], rows[None], full(1, 4))
    with pytest.raises(ValueError, match="row_mask must be boolean, got torch.int64"):
        pooled_cka(rows[None], rows[None], full(2, 4).long())
    with pytest.raises(ValueError, match=r"student_rows has shape \(2, 4, 5\), expected \(k, B"):
        pooled_cka(rows, rows, full(2, 4))
    with pytest.raises(ValueError, match=r"estimator is 'unbiased', expected one of \['biased'"):
        cka(rows, rows, full(2, 4), "unbiased")
