"""`emo-paper` against the authors' procedure, written per text and token without batches."""

import pytest
import torch

from emo.alignment import content_text
from emo.methods.task import ClassTask, ScoreTask

from ...plain_models import PlainModel
from ...tiny_models import STUDENT_PROMPT, TEACHER_PROMPT
from .conftest import SETTINGS
from .paper_reference import Classification, Contrastive, Regression, reference_terms, weighted

PAPER = SETTINGS["emo-paper"]
TEXTS = [0, 4, 5, 9, 17, 18, 19, 21, 23]
PAIRS = [0, 1, 2, 3, 5, 7, 8, 9, 10]
LABELS = [0, 2, 1, 1, 0, 2, 2, 0, 1]
SCORES = [0.0, 5.0, 2.5, 1.0, 3.8, 4.2, 0.4, 2.0, 3.0]


@pytest.fixture(scope="module")
def teacher(tiny):
    return PlainModel(tiny.teacher, TEACHER_PROMPT)


@pytest.fixture(scope="module")
def plain_student(tiny):
    return PlainModel(tiny.student, STUDENT_PROMPT)


@pytest.fixture
def require_equal(tiny, tiny_pairs, collator_for, pair_collator_for, student, build_for, teacher):
    """Compare every term of a batch, and the total, with those of the reference."""
    plain_student = PlainModel(tiny.student, STUDENT_PROMPT)

    def require_equal(family, reference, task=None, labels=None, pairs=True):
        files, made = (tiny_pairs, pair_collator_for) if pairs else (tiny, collator_for)
        rows = PAIRS if pairs else TEXTS
        batch = made(PAPER, family)(rows)
        if labels is not None:
            batch["labels"] = torch.tensor(labels)
        method = build_for(PAPER, family, task)
        texts = [files.texts_read[row] for row in rows]
        expected = weighted(
            reference_terms(
                teacher, plain_student, texts, reference, method.space.projection, content_text
            )
        )
        terms = method(student, batch)
        for name, value in expected.items():
            assert terms.losses[name].item() == pytest.approx(value, abs=1e-5), name
        assert terms.total().item() == pytest.approx(sum(expected.values()), abs=1e-5)

    return require_equal


def test_unlabelled_texts(require_equal):
    """The embedding setting of later work."""
    require_equal("sts", Contrastive(temperature=0.05), pairs=False)


def test_a_classification_batch(require_equal):
    """One layer is compared."""
    task = ClassTask(width=32, classes=3)
    reference = Classification(LABELS, task.dense, task.classes)
    require_equal("classification", reference, task, LABELS, pairs=False)


def test_a_pair_batch(require_equal):
    """A pair is one joint sequence; two layers are compared."""
    task = ClassTask(width=32, classes=3)
    require_equal("pairs", Classification(LABELS, task.dense, task.classes), task, LABELS)


def test_an_sts_batch(require_equal):
    task = ScoreTask(width=32)
    require_equal("sts", Regression(SCORES, task.head.dense, task.head.score), task, SCORES)


def test_the_batch_scale_is_a_switch(collators, student, build):
    batch = collators["emo-paper"](TEXTS)
    scaled = build("emo-paper")(student, batch).losses["attention"]
    plain = build("emo-paper", cka_reduction="sum")(student, batch).losses["attention"]
    torch.testing.assert_close(plain, scaled * len(TEXTS) / 4)


def test_the_two_views_differ_by_dropout_alone(collators, student, build):
    """Without dropout both views are one vector, and InfoNCE would teach nothing about them."""
    batch = collators["emo-paper"](TEXTS)
    method = build("emo-paper")
    torch.manual_seed(0)
    still = method(student, batch).losses["task"], method(student, batch).losses["task"]
    moving = method(student.train(), batch).losses["task"]
    torch.testing.assert_close(*still, atol=0, rtol=0)
    assert moving > still[0]
