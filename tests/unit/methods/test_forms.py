"""What must hold for every form, whatever its terms are."""

import pytest
import torch

from ...tiny_models import HARD_TEXTS
from .conftest import SETTINGS, drop_last_text

FORMS = sorted(SETTINGS)


def norms(term, parameters):
    gradients = torch.autograd.grad(term, parameters, retain_graph=True, allow_unused=True)
    return sum(float(g.double().square().sum()) for g in gradients if g is not None) ** 0.5


@pytest.mark.parametrize("form", FORMS)
def test_padding_changes_nothing(tiny, collators, student_of, build, form):
    """The same texts beside a longer one."""
    method = build(form)
    texts = [0, tiny.texts_read.index("cat"), 4]
    longest = tiny.texts_read.index(HARD_TEXTS[2])
    alone = method(student_of(form), collators[form](texts))
    padded_batch = drop_last_text(collators[form]([*texts, longest]))
    padded = method(student_of(form), padded_batch)
    assert padded_batch["input_ids"].shape[1] > collators[form](texts)["input_ids"].shape[1]
    for name, term in alone.losses.items():
        torch.testing.assert_close(padded.losses[name], term, atol=2e-5, rtol=1e-4, msg=name)
    assert {k: float(v) for k, v in padded.counts.items()} == {
        k: float(v) for k, v in alone.counts.items()
    }


@pytest.mark.parametrize("form", FORMS)
def test_the_order_of_the_batch_changes_nothing(collators, student_of, build, form):
    method = build(form)
    texts = [0, 17, 18, 19, 4, 22, 23]
    forwards = method(student_of(form), collators[form](texts))
    backwards = method(student_of(form), collators[form](texts[::-1]))
    for name, term in forwards.losses.items():
        torch.testing.assert_close(backwards.losses[name], term, atol=2e-5, rtol=1e-4, msg=name)
    torch.testing.assert_close(backwards.vectors, forwards.vectors.flip(0), atol=1e-5, rtol=0)


@pytest.mark.parametrize("form", FORMS)
def test_all_texts_give_finite_terms(tiny, collators, student_of, build, form):
    """One-token, all-unknown, over-long, emoji, CJK, NFD, and literal special strings."""
    terms = build(form)(student_of(form), collators[form](range(len(tiny.texts_read))))
    assert all(torch.isfinite(term) for term in terms.losses.values())
    torch.testing.assert_close(terms.total(), sum(terms.losses.values()))


@pytest.mark.parametrize(
    ("form", "reach"),
    [
        ("pooled", {"cosine": True, "relational": True}),
        ("emo", {"cosine": True, "relational": True, "attention": False, "transport": True}),
        ("emo-paper", {"task": False, "attention": False, "transport": True}),
    ],
)
def test_each_term_reaches_the_student_and_its_projection(
    collators, student_of, build, form, reach
):
    """A term that reaches no weight is a term by name only. `reach`: the projection has a part."""
    method, student = build(form).train(), student_of(form).train()
    terms = method(student, collators[form](range(8)))
    weights = list(student.transformer.parameters())
    heads = list(method.parameters()) if form == "emo-paper" else list(student.head.parameters())
    assert terms.losses.keys() == reach.keys()
    for name, term in terms.losses.items():
        assert norms(term, weights) > 1e-6, name
        assert (norms(term, heads) > 1e-6) == reach[name], name


@pytest.mark.parametrize("form", ["emo", "emo-paper"])
def test_a_batch_without_pairs_and_rows_passes_and_is_counted(collators, student_of, build, form):
    """Pitfall 47: m = 0 for every text."""
    batch = collators[form](range(4))
    batch = batch | {
        "pairs": batch["pairs"][:0],
        "row_mask": torch.zeros(4, 1, dtype=torch.bool),
        "row_positions": torch.zeros(4, 1, dtype=torch.long),
        "teacher_rows": batch["teacher_rows"][:, :, :1] * 0,
    }
    student = student_of(form)
    terms = build(form)(student, batch)
    terms.total().backward()
    gradients = [w.grad for w in student.parameters() if w.grad is not None]
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    if form == "emo":
        assert terms.losses["attention"] == 0
        assert terms.losses["transport"] == 0
        assert terms.counts["attention_skipped"] == 4
        assert terms.counts["transport_skipped"] == 4
    else:
        # One for each text and layer, as published: 0.05 * (4 / B) * B * k.
        torch.testing.assert_close(terms.losses["attention"], torch.tensor(0.05 * 4 * 2))
        assert terms.counts["attention_skipped"] == 4


def test_texts_with_too_few_rows_are_counted(tiny, collators, student_of, build):
    """Debiased CKA needs four rows; "cat" has one pair, the runes have two."""
    cat, runes = (tiny.texts_read.index(text) for text in HARD_TEXTS[:2])
    terms = build("emo")(student_of("emo"), collators["emo"]([0, cat, runes]))
    assert terms.counts["attention_skipped"] == 2
    assert terms.counts["transport_skipped"] == 0
    assert terms.counts["transport_unconverged"] >= 0


def test_pooled_terms_of_weight_zero_are_left_out(collators, student_of, build):
    batch, student = collators["pooled"](range(4)), student_of("pooled")
    assert set(build("pooled", relational=0.0)(student, batch).losses) == {"cosine"}
    assert set(build("pooled", cosine=0.0)(student, batch).losses) == {"relational"}


@pytest.mark.parametrize(
    ("form", "weight", "term"),
    [
        ("pooled", "cosine", "cosine"),
        ("emo", "relational", "relational"),
        ("emo", "attention", "attention"),
        ("emo", "transport", "transport"),
        ("emo-paper", "attention", "attention"),
        ("emo-paper", "transport", "transport"),
    ],
)
def test_a_weight_scales_its_term_and_no_other(collators, student_of, build, form, weight, term):
    batch = collators[form](range(6))
    usual = build(form)(student_of(form), batch).losses
    value = getattr(SETTINGS[form], weight)
    tripled = build(form, **{weight: 3 * value})(student_of(form), batch).losses
    for name, loss in usual.items():
        expected = 3 * loss if name == term else loss
        torch.testing.assert_close(tripled[name], expected, msg=name)
