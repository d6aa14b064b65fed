"""Options beyond the two forms: each changes what it says and leaves the forms as they are."""

import pytest
import torch

from emo.config_methods import EmoPaperSettings, EmoSettings
from emo.losses import fused_transport_loss
from emo.requests import AlignmentRequest, SignalRequest, signal_request

from .conftest import drop_last_text

EMO = EmoSettings(form="emo")
TEXTS = [0, 3, 4, 17, 18, 19, 21, 23]


@pytest.fixture
def losses(student_for, collator_for, build_for):
    """Return the terms of a method on the texts."""

    def losses(**changes):
        settings = EmoSettings(form="emo", **changes)
        return build_for(settings)(student_for(settings), collator_for(settings)(TEXTS)).losses

    return losses


@pytest.mark.parametrize("power", [0.0, 0.5, 2.0])
def test_a_power_of_the_masses_moves_the_transport_and_nothing_else(losses, power):
    usual, other = losses(), losses(mass_power=power)
    assert not torch.isclose(usual.pop("transport"), other.pop("transport"), rtol=1e-4)
    assert all(torch.equal(term, other[name]) for name, term in usual.items())


@pytest.mark.parametrize("form", ["emo", "emo-paper"])
@pytest.mark.parametrize("alone", ["matched", "relations"])
def test_a_term_of_its_own_needs_no_transport(student_for, collator_for, build_for, form, alone):
    """It asks for states and map by itself, and the projection on either side serves it."""
    nothing = dict.fromkeys(EmoSettings.model_fields.keys() & set(EMO.weights), 0.0)
    kind = EmoSettings if form == "emo" else EmoPaperSettings
    settings = kind(form=form, **(nothing | {alone: 0.5}))
    assert signal_request(settings, "sts") == SignalRequest(AlignmentRequest(settings.mass_map))
    student, method = student_for(settings), build_for(settings)
    terms = method(student, collator_for(settings)(TEXTS))
    assert terms.losses.keys() == {alone}
    terms.total().backward()
    reached = [w.grad.abs().sum() for w in student.transformer.parameters() if w.grad is not None]
    assert sum(reached) > 0
    heads = list(student.head.parameters() if form == "emo" else method.parameters())
    assert all((head.grad is not None) == (alone == "matched") for head in heads)


@pytest.mark.parametrize(
    "changes", [{"matched": 1.0}, {"relations": 1.0, "relation_cka": "debiased"}]
)
def test_padding_and_order_of_the_batch_change_nothing(
    student_for, collator_for, build_for, changes
):
    settings = EMO.model_copy(update=changes)
    student, method, collator = student_for(settings), build_for(settings), collator_for(settings)
    texts, longest = [0, 4, 17, 19], 20
    alone = method(student, collator(texts)).losses
    padded = method(student, drop_last_text(collator([*texts, longest]))).losses
    backwards = method(student, collator(texts[::-1])).losses
    for name, term in alone.items():
        torch.testing.assert_close(padded[name], term, atol=2e-5, rtol=1e-4, msg=name)
        torch.testing.assert_close(backwards[name], term, atol=2e-5, rtol=1e-4, msg=name)


def test_new_terms_follow_the_schedule(student_for, collator_for, build_for):
    settings = EMO.model_copy(update={"matched": 1.0, "relations": 1.0, "token_schedule": "fade"})
    student, method = student_for(settings), build_for(settings)
    batch = collator_for(settings)(TEXTS)
    full = method(student, batch).losses
    method.progress = 0.25
    half = method(student, batch).losses
    for name in settings.token_weights:
        torch.testing.assert_close(half[name], full[name] / 2)
    method.progress = 0.5
    assert method(student, batch).losses.keys() == {"cosine", "relational"}


@pytest.mark.parametrize("alone", ["matched", "transport"])
def test_a_head_of_its_own_leaves_that_of_the_vectors_alone(
    student_for, collator_for, build_for, alone
):
    settings = EMO.model_copy(
        update={"transport": 0.0, "attention": 0.0, alone: 1.0, "token_head": "own"}
    )
    student, method = student_for(settings), build_for(settings)
    terms = method(student, collator_for(settings)(TEXTS)).losses
    shared = build_for(settings.model_copy(update={"token_head": "shared"}))
    other = shared(student, collator_for(settings)(TEXTS)).losses
    assert torch.equal(terms["cosine"], other["cosine"])
    assert not torch.isclose(terms[alone], other[alone], rtol=1e-3)
    terms[alone].backward()
    assert student.head.weight.grad is None
    assert method.space.token_heads[0].weight.grad.abs().sum() > 0
    assert {"space.token_heads.0.weight", "space.token_heads.0.bias"} <= set(method.state_dict())


def test_states_behind_their_own_head_are_centred_by_the_mean_teacher_state(
    student_for, collator_for, build_for
):
    """A head that maps every token to that mean leaves nothing of it."""
    settings = EMO.model_copy(update={"token_head": "own", "matched": 1.0})
    student, method = student_for(settings), build_for(settings)
    with torch.no_grad():
        method.space.token_heads[0].weight.zero_()
        method.space.token_heads[0].bias.copy_(method.space.state_centre)
    terms = method(student, collator_for(settings)(TEXTS)).losses
    torch.testing.assert_close(terms["matched"], torch.tensor(1.0))


def test_an_own_head_needs_the_projection_on_the_students_side():
    with pytest.raises(ValueError, match="`token_head: own` needs `projection: student`"):
        EmoPaperSettings(form="emo-paper", token_head="own")
    assert EmoPaperSettings(form="emo-paper", token_head="own", projection="student")
    with pytest.raises(ValueError, match="`token_head: own` serves `transport` and `matched`"):
        EmoSettings(form="emo", token_head="own", transport=0.0)
    with pytest.raises(ValueError, match="`head_start` needs `projection: student`"):
        EmoPaperSettings(form="emo-paper", head_start="drawn")


def test_terms_are_means_over_the_student_layers(student_for, collator_for, build_for):
    """Each layer alone, by a method whose one head is that layer's."""
    changes = {"matched": 1.0, "relations": 1.0, "token_head": "own"}
    both = EMO.model_copy(update=changes | {"state_layers": [0, 1]})
    student, method = student_for(both), build_for(both)
    batch = collator_for(both)(TEXTS)
    terms = method(student, batch)
    alone = []
    for place, layer in enumerate(both.state_layers):
        one = build_for(both.model_copy(update={"state_layers": [layer]}))
        one.space.token_heads[0].load_state_dict(method.space.token_heads[place].state_dict())
        alone.append(one(student, batch))
    for name in ("transport", "matched", "relations"):
        first, second = (result.losses[name] for result in alone)
        assert not torch.isclose(first, second, rtol=1e-3)
        torch.testing.assert_close(terms.losses[name], (first + second) / 2)
        assert terms.counts[f"{name}_skipped"] == alone[0].counts[f"{name}_skipped"]
    for name in ("cosine", "relational", "attention"):
        assert torch.equal(terms.losses[name], alone[0].losses[name])


def test_the_last_layer_in_a_list_is_the_last_layer(student_for, collator_for, build_for):
    usual = EMO.model_copy(update={"token_head": "own"})
    listed = usual.model_copy(update={"state_layers": [1]})
    student, batch = student_for(usual), collator_for(usual)(TEXTS)
    terms, other = (build_for(chosen)(student, batch).losses for chosen in (usual, listed))
    assert all(torch.equal(term, other[name]) for name, term in terms.items())


def test_a_text_unconverged_in_any_layer_counts_once(student_for, collator_for, build_for):
    settings = EMO.model_copy(update={"token_head": "own", "state_layers": [0, 1], "rounds": 1})
    student, method = student_for(settings), build_for(settings)
    batch = collator_for(settings)(TEXTS)
    name = "transport_unconverged"
    both = method(student, batch).counts[name]
    assert 0 < both <= len(TEXTS)
    with torch.no_grad():  # one state for all tokens: any plan is best, and the first is found
        method.space.token_heads[0].weight.zero_()
    assert 0 < method(student, batch).counts[name] <= both
    with torch.no_grad():
        method.space.token_heads[1].weight.zero_()
    assert method(student, batch).counts[name] == 0


def test_inner_layers_need_heads_of_their_own():
    with pytest.raises(ValueError, match=r"`state_layers: \[0\]` with `transport` or `matched`"):
        EmoSettings(form="emo", state_layers=[0])
    with pytest.raises(ValueError, match="name no layer twice"):
        EmoSettings(form="emo", state_layers=[0, 0], token_head="own")
    EmoSettings(form="emo", state_layers=[0], transport=0.0, relations=1.0)


@pytest.mark.parametrize("solver", ["unbalanced", "fused"])
def test_other_solvers_move_the_transport_alone(student_for, collator_for, build_for, solver):
    usual, other = EMO, EMO.model_copy(update={"solver": solver})
    student, batch = student_for(usual), collator_for(usual)(TEXTS)
    before, after = (build_for(chosen)(student, batch).losses for chosen in (usual, other))
    assert not torch.isclose(before.pop("transport"), after["transport"], rtol=1e-3)
    assert all(torch.equal(term, after[name]) for name, term in before.items())
    after["transport"].backward()
    assert student.transformer.get_input_embeddings().weight.grad.abs().sum() > 0
    assert student.head.weight.grad.abs().sum() > 0
    padded = build_for(other)(student, drop_last_text(collator_for(usual)([*TEXTS, 20]))).losses
    torch.testing.assert_close(padded["transport"], after["transport"], atol=2e-5, rtol=1e-4)


def test_marginal_and_structure_reach_their_solvers(student_for, collator_for, build_for):
    """Both lead back to plain transport."""
    student, batch = student_for(EMO), collator_for(EMO)(TEXTS)

    def transport(**changes):
        settings = EMO.model_copy(update={"rounds": 2000} | changes)
        return build_for(settings)(student, batch).losses["transport"]

    plain = transport()
    strict = transport(solver="unbalanced", marginal=1e4)
    torch.testing.assert_close(strict, plain, rtol=1e-3, atol=0)
    assert transport(solver="unbalanced", marginal=0.1) < 0.9 * plain
    torch.testing.assert_close(transport(solver="fused", structure=1e-6), plain, rtol=1e-3, atol=0)
    both = [transport(solver="fused", structure=weight) for weight in (0.3, 0.6)]
    assert both[0] != both[1]


def test_structures_are_cosine_distances_among_the_tokens_of_a_side(
    student_for, collator_for, build_for, monkeypatch
):
    given = []
    monkeypatch.setattr(
        "emo.methods.transport.fused_transport_loss",
        lambda *args, **kwargs: given.append(args) or fused_transport_loss(*args, **kwargs),
    )
    settings = EMO.model_copy(update={"solver": "fused"})
    student, method = student_for(settings), build_for(settings)
    batch = collator_for(settings)(TEXTS)
    method(student, batch)
    ((_, ours, theirs, *_),) = given
    states = student(batch["input_ids"], batch["mask"]).states
    sides = (
        (ours, student.head(states) - method.space.vector_centre, batch["student_text"]),
        (theirs, batch["teacher_states"] - method.space.state_centre, batch["teacher_text"]),
    )
    for structure, centred, mask in sides:
        for text in range(len(TEXTS)):
            own = centred[text][mask[text]]
            expected = 1 - torch.cosine_similarity(own[:, None], own[None, :], dim=2)
            actual = structure[text][mask[text]][:, mask[text]]
            torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


def test_a_power_of_softmax_masses_is_refused():
    assert EmoPaperSettings(form="emo-paper").mass_power == 1.0
    with pytest.raises(ValueError, match="`mass_power: 2.0` needs `masses: share`"):
        EmoPaperSettings(form="emo-paper", mass_power=2.0)
