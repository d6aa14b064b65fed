"""Schedules of the terms on tokens."""

import pytest
import torch

from emo.config_methods import EmoSettings
from emo.methods.schedule import token_share

TEXTS = [0, 3, 17, 18, 19, 20, 21, 22]


@pytest.mark.parametrize("done", range(11))
def test_a_schedule_is_a_straight_line_up_to_half_of_the_steps(done):
    fade = (5 - done) / 5 if done < 5 else 0.0
    assert token_share("fade", done / 10) == pytest.approx(fade)
    assert token_share("grow", done / 10) == pytest.approx(1 - fade)
    assert token_share("constant", done / 10) == 1.0


@pytest.mark.parametrize(("done", "share"), [(0.0, 0.0), (0.2, 0.4), (0.5, 1.0), (0.9, 1.0)])
def test_only_the_token_terms_move(collators, student_of, build, done, share):
    batch, student = collators["emo"](TEXTS), student_of("emo")
    usual, method = build("emo")(student, batch).losses, build("emo", token_schedule="grow")
    method.progress = done
    moved = method(student, batch).losses
    for name in ("cosine", "relational"):
        assert torch.equal(moved[name], usual[name])
    for name in ("attention", "transport"):
        if share:
            torch.testing.assert_close(moved[name], share * usual[name])
        else:
            assert name not in moved


def test_what_a_faded_term_costs_is_saved(collators, student_of, build):
    """Neither its signals nor the student's attention are looked at."""
    bare = {
        name: tensor
        for name, tensor in collators["emo"](TEXTS).items()
        if name in ("input_ids", "mask", "teacher_vectors")
    }
    student, method = student_of("emo"), build("emo", token_schedule="fade")
    asked = []
    student.register_forward_pre_hook(lambda _, given: asked.append(given[2] is not None))
    method.progress = 0.5
    assert method(student, bare).losses.keys() == {"cosine", "relational"}
    assert asked == [False]


def test_a_schedule_needs_a_term_that_lasts():
    """Else half of the steps would have no loss at all."""
    with pytest.raises(ValueError, match="`token_schedule: fade` leaves steps without a term"):
        EmoSettings(form="emo", cosine=0.0, relational=0.0, token_schedule="fade")
    EmoSettings(form="emo", cosine=0.0, relational=0.0, task=0.5, token_schedule="fade")
