"""`emo-paper` against the authors' procedure, written per text and token without batches.

Follows method-evidence 1.1 to 1.6 in float64: maps by strings, column sums, softmax twice, root
CKA, Sinkhorn with offsets and an early end.
"""

import math
import re

import editdistance
import numpy as np
import pytest
import torch

from ...plain_models import PlainModel
from ...tiny_models import STUDENT_PROMPT, TEACHER_PROMPT

TEXTS = [0, 4, 5, 9, 17, 18, 19, 21, 23]


@pytest.fixture(scope="module")
def teacher(tiny):
    return PlainModel(tiny.teacher, TEACHER_PROMPT)


@pytest.fixture(scope="module")
def plain_student(tiny):
    return PlainModel(tiny.student, STUDENT_PROMPT)


def softmax(values):
    powers = [math.exp(value - max(values)) for value in values]
    return [power / sum(powers) for power in powers]


def column_sums(attention):
    return [sum(float(row[key]) for row in attention) for key in range(len(attention))]


def nearest(string, candidates):
    return min(sorted(candidates), key=lambda other: editdistance.eval(string, other))


def mutual_types(teacher_tokens, student_tokens):
    """M1: type to type, each the other's nearest."""
    to_student = {t: nearest(t, student_tokens) for t in teacher_tokens}
    to_teacher = {s: nearest(s, teacher_tokens) for s in student_tokens}
    return {t: s for t, s in to_student.items() if to_teacher[s] == t}


def content(read):
    return {token for token, special in zip(read.tokens, read.special, strict=True) if not special}


def relation_loss(teacher, student, text, top_words):
    """L_IRA of one text, summed over two layers; `top_words` gives the stop-word-free text."""
    decoded = student.tokenizer.decode(student(text).ids, skip_special_tokens=True)
    read = re.sub(r"[^\w\s]", "", decoded.lower())
    teacher_pass, student_pass = teacher(read), student(read)
    types = content(teacher_pass), content(student_pass)
    mapped = mutual_types(*types) if all(types) else {}
    ranking = teacher(top_words(read))
    sums = column_sums(ranking.attention[-1])
    order = sorted(range(len(sums)), key=lambda place: (-sums[place], place))
    top = {ranking.tokens[place] for place in order[: len(mapped) // 3]}
    kept = [(t, s) for t, s in mapped.items() if t in top]
    rows_t = sorted(first_text_position(teacher_pass, t) for t, _ in kept)
    rows_s = sorted(first_text_position(student_pass, s) for _, s in kept)
    return sum(
        root_cka_loss(
            teacher_pass.attention[teacher_layer][rows_t].double().numpy(),
            student_pass.all_keys[student_layer][rows_s].double().numpy(),
        )
        for student_layer, teacher_layer in ((0, 1), (1, 3))
    )


def first_text_position(read, token):
    return next(i for i, t in enumerate(read.tokens) if t == token and not read.special[i])


def root_cka_loss(rows_t, rows_s):
    if len(rows_t) == 0:
        return 1.0
    rows_t, rows_s = rows_t - rows_t.mean(axis=0), rows_s - rows_s.mean(axis=0)
    norm = np.linalg.norm
    scale = (norm(rows_s.T @ rows_s) + 1e-8) * (norm(rows_t.T @ rows_t) + 1e-8)
    return 1.0 - norm(rows_s.T @ rows_t) / math.sqrt(scale)


def transport_loss(teacher_pass, student_pass, projection):
    """L_OT of one text."""
    mass_t = softmax(column_sums(teacher_pass.attention[-1]))
    carried = [min(mass_t)] * len(student_pass.tokens)
    candidates = set(student_pass.tokens) - {"[CLS]"}
    for place, token in enumerate(teacher_pass.tokens):
        target = "[CLS]" if token == "<s>" else nearest(token, candidates)
        for i, student_token in enumerate(student_pass.tokens):
            if student_token == target:
                carried[i] = mass_t[place]
    mass_s = softmax(carried)
    projected = (
        teacher_pass.states.double() @ projection.weight.double().T + projection.bias.double()
    )
    scores = student_pass.states.double() @ projected.T / math.sqrt(32)
    cost = 1.0 - torch.softmax(scores, dim=1).detach().numpy()
    kernel = np.exp(-cost / 0.1)
    u, b, a = np.ones(len(mass_s)), np.array(mass_t), np.array(mass_s) / sum(mass_s)
    for _ in range(100):
        previous = u
        v = b / (kernel.T @ u + 1e-9)
        u = a / (kernel @ v + 1e-9)
        if np.abs(u - previous).max() < 1e-9:
            break
    return float((u[:, None] * kernel * v[None, :] * cost).sum())


def contrastive_loss(vectors, temperature):
    losses = []
    for row, vector in enumerate(vectors):
        scores = [math.exp(float(vector @ other) / temperature) for other in vectors]
        losses.append(-math.log(scores[row] / sum(scores)))
    return sum(losses) / len(losses)


def without_stop_words(text):
    from emo.alignment import content_text  # the list itself is a documented deviation

    return content_text(text)


def test_every_term_is_that_of_the_slow_reference(
    tiny, collators, student, build, teacher, plain_student
):
    texts = [tiny.texts_read[row] for row in TEXTS]
    method = build("emo-paper")
    relation = sum(
        relation_loss(teacher, plain_student, text, without_stop_words) for text in texts
    )
    transport = [
        transport_loss(teacher(text), plain_student(text), method.projection) for text in texts
    ]
    vectors = [plain_student(text).vector.double() for text in texts]
    expected = {
        "task": 0.5 * contrastive_loss(vectors, 0.05),
        "attention": 0.5 * 0.1 * relation * 4 / len(texts),
        "transport": 0.5 * sum(transport) / len(texts),
    }
    terms = method(student, collators["emo-paper"](TEXTS))
    for name, value in expected.items():
        assert terms.losses[name].item() == pytest.approx(value, abs=1e-5), name
    assert terms.total().item() == pytest.approx(sum(expected.values()), abs=1e-5)


def test_the_batch_scale_is_a_switch(collators, student, build):
    batch = collators["emo-paper"](TEXTS)
    scaled = build("emo-paper")(student, batch).losses["attention"]
    plain = build("emo-paper", batch_scale=False)(student, batch).losses["attention"]
    torch.testing.assert_close(plain, scaled * len(TEXTS) / 4)


def test_kd_rate_weighs_task_against_the_rest(collators, student, build):
    batch = collators["emo-paper"](TEXTS)
    half, most = (build("emo-paper", kd_rate=rate)(student, batch).losses for rate in (0.5, 0.8))
    torch.testing.assert_close(most["task"], half["task"] * 0.2 / 0.5)
    torch.testing.assert_close(most["attention"], half["attention"] * 0.8 / 0.5)
    torch.testing.assert_close(most["transport"], half["transport"] * 0.8 / 0.5)


def test_the_two_views_differ_by_dropout_alone(collators, student, build):
    """Without dropout both views are one vector, and InfoNCE would teach nothing about them."""
    batch = collators["emo-paper"](TEXTS)
    method = build("emo-paper")
    torch.manual_seed(0)
    still = method(student, batch).losses["task"], method(student, batch).losses["task"]
    moving = method(student.train(), batch).losses["task"]
    torch.testing.assert_close(*still, atol=0, rtol=0)
    assert moving > still[0]
