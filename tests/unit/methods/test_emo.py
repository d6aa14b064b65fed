"""The terms of `emo` (and the pooled ones) against references written per text and token."""

import numpy as np
import ot
import pytest
import torch

from emo.alignment import read_alignment
from emo.store import Store

from ...plain_models import PlainModel, received_attention
from ...tiny_models import STUDENT_PROMPT, TEACHER_PROMPT

TEXTS = [0, 3, 17, 18, 19, 20, 21, 22, 23]


@pytest.fixture(scope="module")
def read(tiny):
    """Teacher and student pass of each text alone."""
    teacher = PlainModel(tiny.teacher, TEACHER_PROMPT)
    student = PlainModel(tiny.student, STUDENT_PROMPT)
    return [(teacher(tiny.texts_read[i]), student(tiny.texts_read[i])) for i in TEXTS]


@pytest.fixture(scope="module")
def pairs(tiny):
    table = read_alignment(tiny.alignment("mined.original"))
    return [
        list(
            zip(
                table.teacher_position[table.text == row].tolist(),
                table.student_position[table.text == row].tolist(),
                strict=True,
            )
        )
        for row in TEXTS
    ]


@pytest.fixture(scope="module")
def store(tiny):
    return Store(tiny.store)


def array(tensor):
    return tensor.detach().double().numpy()


def cosine(left, right):
    return float(left @ right / np.linalg.norm(left) / np.linalg.norm(right))


def apply(head, states):
    return array(states) @ array(head.weight).T + array(head.bias)


def importance(teacher):
    counted = [not special for special in teacher.special]
    return np.array(received_attention(teacher.attention[-1], counted))


def hsic(left, right):
    """HSIC_1 of Song et al. 2012, from its definition."""
    count = len(left)
    left, right = left - np.diag(np.diag(left)), right - np.diag(np.diag(right))
    product = left @ right
    total = left.sum() * right.sum() / ((count - 1) * (count - 2))
    return (np.trace(product) + total - 2 * product.sum() / (count - 2)) / (count * (count - 3))


def test_cosine_and_relational(collators, student_of, build, read, store):
    student, centre = student_of("emo"), store["vector_centre"]
    terms = build("emo")(student, collators["emo"](TEXTS)).losses
    targets = [array(teacher.vector) - centre for teacher, _ in read]
    heads = [apply(student.head, student_pass.pooled) for _, student_pass in read]
    mapped = [vector / np.linalg.norm(vector) - centre for vector in heads]
    expected = np.mean([1 - cosine(m, t) for m, t in zip(mapped, targets, strict=True)])
    assert terms["cosine"].item() == pytest.approx(expected, abs=1e-5)
    squares = []
    for first in range(len(read)):
        for second in range(len(read)):
            if first != second:
                ours = cosine(mapped[first], mapped[second])
                theirs = cosine(targets[first], targets[second])
                squares.append((ours - theirs) ** 2)
    assert terms["relational"].item() == pytest.approx(10 * np.mean(squares), abs=1e-5)


def test_pooled_has_the_same_two_terms(collators, student_of, build):
    student = student_of("emo")
    emo = build("emo")(student, collators["emo"](TEXTS)).losses
    pooled = build("pooled")(student, collators["pooled"](TEXTS)).losses
    assert pooled.keys() == {"cosine", "relational"}
    for name, term in pooled.items():
        torch.testing.assert_close(term, emo[name])


def test_attention(collators, student_of, build, read, pairs):
    """Rows of the eight most important pairs, debiased CKA, mean over texts with four or more."""
    losses = []
    for (teacher, student_pass), mapped in zip(read, pairs, strict=True):
        sums = importance(teacher)
        chosen = sorted(mapped, key=lambda pair: (-sums[pair[0]], pair[0]))[:8]
        if len(chosen) < 4:
            continue
        rows_t = array(teacher.attention[3])[[t for t, _ in chosen]]
        rows_s = array(student_pass.all_keys[1])[[s for _, s in chosen]]
        gram_t, gram_s = rows_t @ rows_t.T, rows_s @ rows_s.T
        norm = np.sqrt(hsic(gram_t, gram_t) * hsic(gram_s, gram_s))
        losses.append(1 - hsic(gram_s, gram_t) / norm)
    assert 3 < len(losses) < len(TEXTS)
    terms = build("emo", attention=1.0)(student_of("emo"), collators["emo"](TEXTS))
    assert terms.losses["attention"].item() == pytest.approx(np.mean(losses), abs=1e-4)
    assert terms.counts["attention_skipped"] == len(TEXTS) - len(losses)


def test_transport(collators, student_of, build, read, pairs, store):
    """POT's plain Sinkhorn on every text by itself."""
    student, method = student_of("emo"), build("emo", rounds=5000, transport=1.0)
    losses = []
    for (teacher, student_pass), mapped in zip(read, pairs, strict=True):
        sums = importance(teacher)
        places_t = [i for i, special in enumerate(teacher.special) if not special]
        places_s = [i for i, special in enumerate(student_pass.special) if not special]
        mass_t = sums / sums.sum()
        carried = {s: mass_t[t] for t, s in mapped if mass_t[t] > 0}
        least = 0.1 * np.mean(list(carried.values()))
        mass_s = np.array([carried.get(place, least) for place in places_s])
        states_t = array(teacher.states)[places_t] - store["state_centre"]
        states_s = apply(student.head, student_pass.states[places_s]) - store["vector_centre"]
        cost = np.array([[1 - cosine(s, t) for t in states_t] for s in states_s])
        masses = mass_s / mass_s.sum(), mass_t[places_t]
        plan = ot.sinkhorn(*masses, cost, 0.1, numItermax=20000, stopThr=1e-10)
        losses.append((plan * cost).sum())
    terms = method(student, collators["emo"](TEXTS))
    assert terms.losses["transport"].item() == pytest.approx(np.mean(losses), abs=1e-4)
    assert terms.counts["transport_skipped"] == 0
    assert terms.counts["transport_unconverged"] == 0


def test_matched(collators, student_of, build, read, pairs, store):
    """The teacher's masses weigh the pairs of a text; a text without pairs has no part."""
    student, losses = student_of("emo"), []
    for (teacher, student_pass), mapped in zip(read, pairs, strict=True):
        mass = importance(teacher)
        total = 0.0
        for t, s in mapped:
            ours = apply(student.head, student_pass.states[s]) - store["vector_centre"]
            total += mass[t] * (1 - cosine(ours, array(teacher.states[t]) - store["state_centre"]))
        losses.append(total / sum(mass[t] for t, _ in mapped))
    terms = build("emo", matched=1.0)(student, collators["emo"](TEXTS))
    assert terms.losses["matched"].item() == pytest.approx(np.mean(losses), abs=1e-5)
    assert terms.counts["matched_skipped"] == 0


@pytest.mark.parametrize("estimator", ["pooled", "debiased"])
def test_relations(collators, student_of, build, read, pairs, estimator):
    """Debiased CKA of the states themselves, over all pairs or over the pairs of each text."""
    rows = [
        (
            array(student_pass.states[[s for _, s in mapped]]),
            array(teacher.states[[t for t, _ in mapped]]),
        )
        for (teacher, student_pass), mapped in zip(read, pairs, strict=True)
    ]
    groups = [both for both in rows if len(both[0]) >= 4]
    if estimator == "pooled":
        groups = [tuple(np.concatenate(side) for side in zip(*rows, strict=True))]
    losses = []
    for ours, theirs in groups:
        grams = ours @ ours.T, theirs @ theirs.T
        norm = np.sqrt(hsic(grams[0], grams[0]) * hsic(grams[1], grams[1]))
        losses.append(1 - hsic(*grams) / norm)
    method = build("emo", relations=1.0, relation_cka=estimator)
    terms = method(student_of("emo"), collators["emo"](TEXTS))
    assert terms.losses["relations"].item() == pytest.approx(np.mean(losses), abs=1e-4)
    few = len(rows) - len(groups) if estimator == "debiased" else 0
    assert terms.counts["relations_skipped"] == few


@pytest.mark.parametrize(
    ("weight", "unread"),
    [
        ("attention", ("row_mask", "row_positions", "teacher_rows")),
        ("transport", ("teacher_states", "teacher_importance", "teacher_text", "pairs")),
    ],
)
def test_a_term_of_weight_zero_reads_nothing_and_leaves_the_others_as_they_are(
    collators, student_of, build, weight, unread
):
    batch, student = collators["emo"](TEXTS), student_of("emo")
    usual = build("emo")(student, batch)
    asked = []
    student.register_forward_pre_hook(lambda _, given: asked.append(given[2] is not None))
    bare = {name: tensor for name, tensor in batch.items() if name not in unread}
    without = build("emo", **{weight: 0.0})(student, bare)
    assert asked == [weight == "transport"], "attention maps are for the attention term"
    assert without.losses.keys() == usual.losses.keys() - {weight}
    for name, term in without.losses.items():
        torch.testing.assert_close(term, usual.losses[name])
    assert not [name for name in without.counts if name.startswith(weight)]


def test_a_text_without_pairs_does_not_dilute_the_transport(collators, student_of, build):
    """The mean is over the texts that were moved; the others are counted."""
    student, method, batch = student_of("emo"), build("emo"), collators["emo"](TEXTS)
    texts = batch["pairs"][:, 0]
    losses = [
        method(student, batch | {"pairs": batch["pairs"][texts == text]}).losses["transport"]
        for text in range(len(TEXTS))
    ]
    two = method(student, batch | {"pairs": batch["pairs"][texts < 2]})
    torch.testing.assert_close(
        two.losses["transport"], (losses[0] + losses[1]) / 2, rtol=1e-4, atol=0
    )
    assert two.counts["transport_skipped"] == len(TEXTS) - 2
