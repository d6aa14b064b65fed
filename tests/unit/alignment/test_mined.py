"""The repaired map, case by case."""

from emo.alignment import align
from emo.alignment.mined import pair_pieces
from emo.alignment.pieces import Pieces


def pairs(teacher, student):
    found = pair_pieces(teacher, student)
    return list(zip(found.teacher_position.tolist(), found.student_position.tolist(), strict=True))


def test_repeated_words_pair_by_their_place_in_the_text():
    """Pitfall 46: occurrences, not types, and pairs are built together."""
    teacher = Pieces([1, 2, 3], ["the", "cat", "the"], [3, 11, 19])
    student = Pieces([1, 2, 3], ["the", "cat", "the"], [3, 11, 19])
    assert pairs(teacher, student) == [(1, 1), (2, 2), (3, 3)]


def test_equal_place_goes_to_the_lower_index():
    """The bytes of one character share its span."""
    teacher = Pieces([1, 2, 3], ["é", "é", "é"], [1, 1, 1])
    assert pairs(teacher, Pieces([1], ["é"], [1])) == [(1, 1)]


def test_nothing_in_common_stays_unmapped():
    assert pairs(Pieces([1], ["abc"], [3]), Pieces([1], ["xyz"], [3])) == []
    assert pairs(Pieces([1], [""], [0]), Pieces([1], [""], [0])) == []


def test_texts_of_special_tokens_only_have_no_rows(teacher, student):
    """Pitfall 47: few or no pairs are counted, nothing breaks."""
    alignment = align(["", " ", "ok"], teacher, student, "mined")
    assert alignment.statistics.texts_without_pairs == 2
    assert alignment.text.tolist() == [2, 2]


def test_literal_specials_never_move_the_real_ones(teacher, student):
    """Pitfall 33: rows never hold the positions of tokens the tokenizer added."""
    text = "<s> [CLS] </s> [SEP]"
    alignment = align([text], teacher, student, "mined")
    last = sum(not flag for flag in teacher([text])[0].prompt) - 1
    assert len(alignment.text)
    assert not {0, last} & set(alignment.teacher_position.tolist())
