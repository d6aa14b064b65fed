"""Each switch between `emo` and `emo-paper`, alone and with others.

What a switch computes is tested where it is built; here every combination must run, and a switch
must change what it says it changes, and nothing else.
"""

import random

import pytest
import torch

from emo.config_methods import EmoPaperSettings, EmoSettings, TokenTerms

EMO, PAPER = EmoSettings(form="emo"), EmoPaperSettings(form="emo-paper")
SWITCHES = [name for name in TokenTerms.model_fields if getattr(EMO, name) != getattr(PAPER, name)]
TEXTS = [0, 3, 4, 17, 18, 19, 21, 23]
TERMS = {
    "cosine": {"cosine"},
    "relational": {"relational"},
    "task": {"task"},
    "attention": {"attention"},
    "transport": {"transport"},
    "projection": {"task", "cosine", "relational", "transport"},
    "layers": {"attention"},
    "row_text": {"attention"},
    "row_map": {"attention"},
    "row_ranking": {"attention"},
    "rows": {"attention"},
    "row_pairing": {"attention"},
    "cka": {"attention"},
    "cka_reduction": {"attention"},
    "mass_map": {"transport"},
    "tokens": {"transport"},
    "masses": {"transport"},
    "cost": {"transport"},
    "centred": {"transport"},
    "solver": set(),  # the same loss, another gradient
    "dropout": set(),  # of the student in training
}
SILENT = {"row_pairing"}  # shows only where a map crosses: tests/unit/test_row_selection.py


@pytest.fixture
def run(student_for, collator_for, build_for):
    """Make a batch with a method's signals and return its terms."""

    def run(settings):
        student = student_for(settings)
        terms = build_for(settings)(student, collator_for(settings)(TEXTS))
        terms.total().backward()
        return terms, student

    return run


def require_sound(terms, student, settings):
    weights = {name for name in settings.weights if getattr(settings, name)}
    assert terms.losses.keys() == weights
    assert all(torch.isfinite(term) for term in terms.losses.values())
    gradients = [w.grad for w in student.transformer.parameters() if w.grad is not None]
    assert all(torch.isfinite(gradient).all() for gradient in gradients)
    assert sum(float(gradient.abs().sum()) for gradient in gradients) > 0


def test_the_list_of_switches_is_whole():
    assert set(SWITCHES) == set(TERMS)


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("start", [EMO, PAPER], ids=["emo", "emo-paper"])
def test_a_switch_alone_changes_its_own_terms(run, name, start):
    other = PAPER if start is EMO else EMO
    before, _ = run(start)
    flipped = start.model_copy(update={name: getattr(other, name)})
    after, student = run(flipped)
    require_sound(after, student, flipped)
    terms = before.losses.keys() | after.losses.keys()
    pairs = {term: (before.losses.get(term), after.losses.get(term)) for term in terms}
    kept = {term: pair for term, pair in pairs.items() if None not in pair}
    assert all(
        torch.isclose(*pair, rtol=1e-5) for term, pair in kept.items() if term not in TERMS[name]
    )
    if name not in SILENT:
        # Behind the paper's double softmax some differences are small.
        same = {term for term, pair in kept.items() if torch.equal(*pair)}
        assert not same & TERMS[name], "a switch that switches nothing"


def test_the_solver_is_a_switch_of_the_gradient(run):
    """Both find the same plan; only the unrolled one lets the plan follow the student."""
    terms, student = run(EMO)
    unrolled, other = run(EMO.model_copy(update={"solver": "unrolled"}))
    torch.testing.assert_close(terms.losses["transport"], unrolled.losses["transport"])
    pairs = zip(student.transformer.parameters(), other.transformer.parameters(), strict=True)
    assert any(
        not torch.allclose(one.grad, two.grad, rtol=1e-3)
        for one, two in pairs
        if one.grad is not None
    )


@pytest.mark.parametrize("seed", range(40))
def test_every_combination_runs(run, seed):
    """A draw of all switches at once, the choices that neither form makes included."""
    draw = random.Random(seed)
    chosen = {name: getattr(draw.choice([EMO, PAPER]), name) for name in SWITCHES}
    chosen["cost"] = draw.choice(["cosine", "euclidean", "attention"])
    chosen["cka"] = draw.choice(["debiased", "biased", "pooled", "root"])
    chosen["cka_reduction"] = draw.choice(["mean", "sum", "sum-4"])
    chosen["mass_map"] = draw.choice(["mined", "mined-dp", "span", "mined-masses"])
    chosen["row_map"] = draw.choice(["mined", "mined-dp", "span", "mined-types"])
    chosen["layers"] = draw.choice([1, 2, [[0, 2], [1, 0]]])
    chosen["solver"] = draw.choice(["envelope", "unrolled", "unbalanced", "fused"])
    chosen |= {name: draw.choice([0.0, 0.5]) for name in ("matched", "relations")}
    chosen["relation_cka"] = draw.choice(["pooled", "debiased"])
    if chosen["masses"] == "share":
        chosen["mass_power"] = draw.choice([0.0, 0.5, 2.0])
    if chosen["projection"] == "student":
        chosen["token_head"] = draw.choice(["shared", "own"])
        if chosen["token_head"] == "own":
            chosen["state_layers"] = draw.choice([None, [0], [0, 1]])
    settings = EmoSettings(form="emo", **chosen)
    require_sound(*run(settings), settings)
