"""Methods on batches with labels: the head of a task, and the head of a tuned teacher."""

import pytest
import torch
from torch.nn import functional

from emo.config_methods import PooledSettings
from emo.methods.task import ClassTask, ScoreTask, build_task

from .conftest import SETTINGS

TEXTS = range(6)
LABELS = torch.tensor([2, 0, 1, 1, 0, 2])
SCORES = torch.tensor([0.0, 5.0, 3.2, 1.7, 2.0, 4.4])


def seeded(make, *sizes):
    torch.manual_seed(7)
    return make(*sizes)


def teacher_logits(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def batch(collators):
    """A batch of a form with class numbers and the logits of a teacher's head."""

    def batch(form):
        return collators[form](TEXTS) | {"labels": LABELS, "teacher_logits": teacher_logits(6, 3)}

    return batch


@pytest.fixture
def build_labelled(build_for):
    """Build a form with a class head and other weights."""

    def build_labelled(form, **changes):
        task = seeded(ClassTask, 32, 3)
        return build_for(SETTINGS[form].model_copy(update=changes), task=task)

    return build_labelled


def test_a_family_has_its_head():
    assert isinstance(build_task("sts", 32, 0), ScoreTask)
    for family, classes in (("classification", 6), ("pairs", 2)):
        assert build_task(family, 32, classes).classes.weight.shape == (classes, 32)


@pytest.mark.parametrize("form", sorted(SETTINGS))
def test_head_terms_are_the_same_in_every_form_and_leave_the_others_alone(
    form, batch, build_labelled, student_of
):
    student, given = student_of(form), batch(form)
    plain = build_labelled(form, task=0.0)(student, given).losses
    assert not {"task", "logits"} & plain.keys()
    terms = build_labelled(form, task=0.5, logits=3.0, logit_temperature=4.0)(student, given).losses
    assert terms.keys() == {"task", "logits"} | plain.keys()
    for name, term in plain.items():
        torch.testing.assert_close(terms[name], term, msg=name)
    head = seeded(ClassTask, 32, 3)
    first = student(given["input_ids"], given["mask"]).states[:, 0]
    logits = head.classes(torch.tanh(head.dense(first)))
    torch.testing.assert_close(terms["task"], 0.5 * functional.cross_entropy(logits, LABELS))
    divergence = functional.kl_div(
        (logits / 4).log_softmax(-1), (given["teacher_logits"] / 4).softmax(-1), reduction="sum"
    )
    torch.testing.assert_close(terms["logits"], 3.0 * 16 * divergence / 6)


def test_scores_are_compared_as_scores(build_for, collators, student_of):
    settings = PooledSettings(form="pooled", task=1.0, logits=2.0)
    method = build_for(settings, task=seeded(ScoreTask, 32))
    given = collators["pooled"](TEXTS) | {"labels": SCORES, "teacher_logits": teacher_logits(6)}
    student = student_of("pooled")
    terms = method(student, given).losses
    first = student(given["input_ids"], given["mask"]).states[:, 0]
    scores = 5 * method.task.head(first).sigmoid()
    torch.testing.assert_close(terms["task"], functional.mse_loss(scores, SCORES))
    taught = 5 * given["teacher_logits"].sigmoid()
    torch.testing.assert_close(terms["logits"], 2.0 * functional.mse_loss(scores, taught))


@pytest.mark.parametrize("term", ["task", "logits"])
def test_head_terms_reach_the_student_and_the_head_but_not_its_projection(
    batch, build_labelled, student_of, term
):
    method = build_labelled("pooled", **{"cosine": 0.0, "relational": 0.0, term: 1.0})
    student = student_of("pooled")
    terms = method(student, batch("pooled"))
    assert terms.losses.keys() == {term}
    terms.total().backward()
    for weights in (student.transformer, method.task):
        gradients = [w.grad for w in weights.parameters() if w.grad is not None]
        assert sum(float(gradient.abs().sum()) for gradient in gradients) > 1e-6
    assert all(weight.grad is None for weight in student.head.parameters())


def test_without_labels_the_task_of_pooled_is_that_of_the_papers_form(build, collators, student_of):
    """Two views without dropout are equal, so that every method gives the same number."""
    given = collators["pooled"](TEXTS)
    terms = build("pooled", task=0.5)(student_of("pooled"), given).losses
    assert terms.keys() == {"task", "cosine", "relational"}
    emo = build("emo", task=0.5)(student_of("emo"), collators["emo"](TEXTS)).losses
    torch.testing.assert_close(terms["task"], emo["task"])


def test_a_logit_term_without_a_head_is_refused(build):
    with pytest.raises(ValueError, match="a logit term needs the task of labelled batches"):
        build("pooled", logits=1.0)
