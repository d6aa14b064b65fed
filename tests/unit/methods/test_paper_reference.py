"""The slow reference of the paper's form, by hand and against other libraries."""

import copy
import math

import numpy as np
import ot
import pytest
import torch
from tokenizers.processors import TemplateProcessing
from torch.nn import Linear, functional

from ...plain_models import PlainModel
from ...tiny_models import STUDENT_PROMPT, TEACHER_PROMPT
from . import paper_reference as reference

PAIR = ("the old cat sings in the garden", "a young bird sings, and the dog sleeps beside a river!")


def content(text):
    return " ".join(word for word in text.split() if word not in {"the", "a", "and", "in"})


def paired(model, start, between, end):
    """Give a tokenizer the template of a pair, which the tiny ones lack."""
    special = [(token, model.tokenizer.convert_tokens_to_ids(token)) for token in (start, end)]
    model.tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{start} $A {end}",
        pair=f"{start} $A {between} $B:1 {end}:1",
        special_tokens=special,
    )
    return model


@pytest.fixture(scope="module")
def teacher(tiny):
    return paired(PlainModel(tiny.teacher, TEACHER_PROMPT), "<s>", "</s> </s>", "</s>")


@pytest.fixture(scope="module")
def student(tiny):
    return paired(PlainModel(tiny.student, STUDENT_PROMPT), "[CLS]", "[SEP]", "[SEP]")


@pytest.fixture
def layers():
    """Projection, pooler, classifier, hidden and output layer of a score."""
    torch.manual_seed(0)
    return Linear(48, 32), Linear(32, 32), Linear(32, 3), Linear(32, 16), Linear(16, 1)


def test_mutual_map_keeps_pairs_that_choose_each_other():
    mapped = reference.mutual_map({"▁cat", "▁cats", "▁dog"}, {"cat", "dog", "##s"})
    assert mapped == {"▁cat": "cat", "▁dog": "dog"}  # ▁cats also chooses cat
    assert reference.mutual_map(set(), {"cat"}) == {}


def test_ties_go_to_the_first_string_in_order():
    assert reference.nearest("a", {"d", "b", "c"}) == "b"


def test_mass_map_fixes_the_start_and_shares_entries_of_equal_strings():
    targets = reference.mass_map(
        ["<s>", "▁cat", "</s>", "</s>", "▁cat"], ["[CLS]", "cat", "[SEP]"], ("<s>", "[CLS]")
    )
    # 5 edits from </s> to [SEP], 4 to cat: the authors' oddity
    assert targets == {"<s>": "[CLS]", "▁cat": "cat", "</s>": "cat"}


def test_carried_masses_overwrite_and_fill_with_the_least():
    carried = reference.carried_masses(
        [0.5, 0.3, 0.2], ["x", "y", "z"], ["p", "q", "p", "r"], {"x": "p", "y": "q", "z": "p"}
    )
    assert carried == [0.2, 0.3, 0.2, 0.2]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((12, 32, 2), [(10, 21), (11, 23)]), ((12, 24, 2), [(10, 21), (11, 23)])],
)
def test_layer_pairs_are_the_published_ones(shape, expected):
    assert reference.layer_pairs(*shape) == expected


def test_root_cka_by_hand():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    assert reference.root_cka_loss(rows, 3 * rows @ np.array([[0, 1], [-1, 0]])) < 1e-7
    assert reference.root_cka_loss(rows[:1], rows[:1]) == 1
    assert reference.root_cka_loss(rows[:0], rows[:0]) == 1
    # centred, both sides have one direction; over the three rows these are at 60 degrees
    one, other = np.array([[1.0], [-1.0], [0.0]]), np.array([[1.0], [0.0], [-1.0]])
    assert reference.root_cka_loss(one, other) == pytest.approx(1 - 0.5)


def test_sinkhorn_equals_pot():
    generator = np.random.default_rng(0)
    cost, masses = generator.random((5, 7)), generator.random(12)
    student_mass, teacher_mass = masses[:5] / masses[:5].sum(), masses[5:] / masses[5:].sum()
    expected = ot.sinkhorn(student_mass, teacher_mass, cost, 0.1, stopThr=1e-12)
    actual = reference.sinkhorn(cost, student_mass, teacher_mass)
    assert actual == pytest.approx(expected, abs=1e-6)


def test_a_pair_is_one_sequence_with_the_prompt_before_its_first_text(student):
    read = student(PAIR)
    ids = student.tokenizer(STUDENT_PROMPT + PAIR[0], PAIR[1])["input_ids"]
    prompt = student.tokenizer(STUDENT_PROMPT, add_special_tokens=False)["input_ids"]
    assert read.ids == ids[:1] + ids[1 + len(prompt) :]
    assert [token for token, flag in zip(read.tokens, read.special, strict=True) if flag] == [
        "[CLS]",
        "[SEP]",
        "[SEP]",
    ]
    assert read.all_keys.shape[1:] == (len(read.ids), len(ids))


def test_a_pair_is_one_string_for_the_rows(student):
    assert reference.normalised(student, PAIR) == (
        "the old cat sings in the garden a young bird sings and the dog sleeps beside a river"
    )


def test_classes_are_scored_by_a_pooler_and_a_linear_layer(student, layers):
    _, pooler, classifier, *_ = layers
    task = reference.Classification([2, 0], pooler, classifier)
    texts = [PAIR[0], PAIR[1]]
    first = torch.stack([student(text).states[0] for text in texts])
    logits = classifier(torch.tanh(pooler(first)))
    expected = functional.cross_entropy(logits, torch.tensor([2, 0])).item()
    assert reference.task_loss(student, texts, task) == pytest.approx(expected, abs=1e-5)


def test_scores_are_five_times_a_sigmoid(student, layers):
    *_, hidden, output = layers
    task = reference.Regression([4.5, 0.0], hidden, output)
    texts = [PAIR, PAIR[::-1]]
    first = torch.stack([student(pair).states[0] for pair in texts])
    scores = 5 * output(torch.tanh(hidden(first)))[:, 0].sigmoid()
    expected = functional.mse_loss(scores, torch.tensor([4.5, 0.0])).item()
    assert reference.task_loss(student, texts, task) == pytest.approx(expected, abs=1e-5)


def test_contrast_of_equal_vectors_is_that_of_chance():
    assert reference.contrastive_loss([np.ones(2)] * 4, 0.05) == pytest.approx(math.log(4))


def test_terms_of_a_batch_are_those_of_its_texts(teacher, student, layers):
    projection, pooler, classifier, hidden, output = layers

    def terms(texts, task):
        return reference.reference_terms(teacher, student, texts, task, projection, content)

    def alone(text, count):
        """k layers of one text, by hand-made parts."""
        return reference.relation_loss(teacher, student, text, count, content)

    single = terms(list(PAIR), reference.Classification([1, 2], pooler, classifier))
    assert single["attention"] == pytest.approx(2 * (alone(PAIR[0], 1) + alone(PAIR[1], 1)))
    pair = terms([PAIR], reference.Classification([1], pooler, classifier))
    score = terms([PAIR], reference.Regression([1.0], hidden, output))
    assert pair["attention"] == score["attention"] == pytest.approx(4 * alone(PAIR, 2))
    assert pair["transport"] == score["transport"]
    assert pair["task"] != score["task"]
    assert 1e-4 < alone(PAIR, 2) < 1.9  # two rows: near 0, neither 0 nor without rows
    assert 0 < pair["transport"] < 1
    assert reference.weighted({"task": 1.0, "attention": 2.0, "transport": 3.0}, rate=0.6) == {
        "task": 0.4,
        "attention": pytest.approx(0.12),
        "transport": pytest.approx(1.8),
    }


def test_projection_moves_transport_alone(teacher, student, layers):
    projection, pooler, classifier, *_ = layers
    task = reference.Classification([1], pooler, classifier)
    other = copy.deepcopy(projection)
    other.weight.data *= 30.0  # a bias would cancel in the softmax over teacher tokens
    before, after = (
        reference.reference_terms(teacher, student, [PAIR], task, layer, content)
        for layer in (projection, other)
    )
    assert before["transport"] != pytest.approx(after["transport"], abs=1e-4)
    assert before["attention"] == after["attention"]
    assert before["task"] == after["task"]
