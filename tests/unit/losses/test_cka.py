"""Linear CKA, per text and over a batch."""

import pytest
import torch
from torch.autograd import gradcheck

from emo.losses import MINIMUM_ROWS, cka, cka_loss, pooled_cka_loss

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
@pytest.mark.parametrize("loss", [cka_loss, pooled_cka_loss])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_constant_rows_are_finite(estimator, loss, dtype):
    student = torch.full((2, 4, 3), 0.1, dtype=dtype, requires_grad=True)
    result = loss(student, rows_of(2, 4, 6, dtype=dtype), full(2, 4), estimator).loss
    torch.testing.assert_close(result, torch.ones((), dtype=dtype))
    (gradient,) = torch.autograd.grad(result, student)
    assert gradient.eq(0).all()


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


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_loss_averages_over_texts_with_enough_rows(estimator):
    student, teacher = rows_of(4, 6, 5, seed=1), rows_of(4, 6, 5, seed=2)
    fewest = MINIMUM_ROWS[estimator]
    mask = torch.arange(6)[None, :] < torch.tensor([[6], [fewest], [fewest - 1], [0]])
    result = cka_loss(student, teacher, mask, estimator)
    expected = 1 - cka(student, teacher, mask, estimator)[:2].mean()
    torch.testing.assert_close(result.loss, expected)
    assert (result.texts_used.item(), result.texts_skipped.item()) == (2, 2)


@pytest.mark.parametrize("loss", [cka_loss, pooled_cka_loss])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_loss_without_usable_text_is_zero_with_a_graph(loss, count):
    student = rows_of(2, 3, 4).requires_grad_()
    mask = (torch.arange(3) < count).expand(2, 3)
    result = loss(student, rows_of(2, 3, 4, seed=1), mask, "debiased")
    assert result.loss.item() == 0
    assert result.texts_skipped.item() == 2
    (gradient,) = torch.autograd.grad(result.loss, student)
    assert gradient.eq(0).all()


def test_pooled_equals_summed_hsic():
    student, teacher = rows_of(3, 6, 5, seed=1), rows_of(3, 6, 8, seed=2)
    counts = (6, 5, 4)
    mask = torch.arange(6)[None, :] < torch.tensor(counts)[:, None]
    sums = torch.zeros(3, dtype=torch.float64)
    for text, count in enumerate(counts):
        first, second = student[text, :count], teacher[text, :count]
        first, second = first @ first.T, second @ second.T
        sums += torch.stack(
            [song_hsic(first, second), song_hsic(first, first), song_hsic(second, second)]
        )
    expected = 1 - sums[0] / (sums[1] * sums[2]).sqrt()
    actual = pooled_cka_loss(student, teacher, mask, "debiased").loss
    torch.testing.assert_close(actual, expected, atol=1e-10, rtol=0)


def test_pooled_of_one_text_is_its_own_cka():
    student, teacher = rows_of(1, 5, 6, seed=1), rows_of(1, 5, 6, seed=2)
    for estimator in ESTIMATORS:
        torch.testing.assert_close(
            pooled_cka_loss(student, teacher, full(1, 5), estimator).loss,
            cka_loss(student, teacher, full(1, 5), estimator).loss,
        )


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("loss", [cka_loss, pooled_cka_loss])
def test_gradients(estimator, loss):
    student = rows_of(2, 5, 4, seed=1).requires_grad_()
    teacher = rows_of(2, 5, 6, seed=2).requires_grad_()
    mask = torch.arange(5)[None, :] < torch.tensor([[5], [4]])

    def value(student, teacher):
        return loss(student, teacher, mask, estimator).loss

    assert gradcheck(value, (student, teacher))
    (gradient,) = torch.autograd.grad(value(student, teacher), student)
    assert gradient.abs().max() > 1e-3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_and_autocast_are_finite(dtype):
    student = rows_of(2, 6, 128, dtype=torch.float32).to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        result = cka_loss(student, rows_of(2, 6, 90).to(dtype), full(2, 6), "debiased").loss
    (gradient,) = torch.autograd.grad(result, student)
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
        cka_loss(rows, rows, full(1, 4), "biased")
    with pytest.raises(ValueError, match="row_mask must be boolean, got torch.int64"):
        pooled_cka_loss(rows, rows, full(2, 4).long(), "biased")
    with pytest.raises(ValueError, match=r"estimator is 'unbiased', expected one of \['biased'"):
        cka(rows, rows, full(2, 4), "unbiased")
