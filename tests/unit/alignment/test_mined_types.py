"""The paper's relation map, case by case."""

from emo.alignment import align
from emo.alignment.mined_types import first_positions
from emo.alignment.shown import ShownTokens


def test_repeated_types_give_one_row_at_their_first_place(teacher, student):
    alignment = align(["the the the"], teacher, student, "mined-types")
    assert alignment.teacher_position.tolist() == [1]
    assert alignment.student_position.tolist() == [1]
    assert alignment.distance.tolist() == [1]  # the mark of "▁the" counts as an edit
    assert alignment.statistics.teacher_tokens == alignment.statistics.student_tokens == 1


def test_there_is_no_largest_distance(teacher, student):
    alignment = align(["😀"], teacher, student, "mined-types")
    assert alignment.distance.tolist() == [5]  # "▁" has one edit less than "<unk>"


def test_special_tokens_are_told_by_mask():
    tokens = ShownTokens(["<s>", "▁a", "<s>", "</s>"], [True, False, False, True], "<s>")
    assert first_positions(tokens) == {"▁a": 1, "<s>": 2}
