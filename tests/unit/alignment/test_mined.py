"""The repaired map, case by case."""

from emo.alignment import align
from emo.alignment.mined import MinedPairs

from .conftest import pieces, rows


def pairs(teacher, student):
    return [row[:2] for row in rows(MinedPairs.pair(teacher, student))]


def test_repeated_words_pair_by_their_place_in_the_text():
    """Pitfall 46: occurrences, not types, and pairs are built together."""
    words = pieces(["the", "cat", "the"], [3, 11, 19])
    assert pairs(words, words) == [(1, 1), (2, 2), (3, 3)]
    other_order = pieces(["the", "cats"], [19, 11])
    assert rows(MinedPairs.pair(words, other_order)) == [(2, 2, 1), (3, 1, 0)]


def test_equal_place_goes_to_the_lower_index():
    """The bytes of one character share its span."""
    assert pairs(pieces(["é", "é", "é"], [1, 1, 1]), pieces(["é"], [1])) == [(1, 1)]


def test_nothing_in_common_stays_unmapped():
    assert pairs(pieces(["abc"], [3]), pieces(["xyz"], [3])) == []
    assert pairs(pieces([""], [0]), pieces([""], [0])) == []


def test_a_piece_that_shows_nothing_is_nobodys_candidate():
    """A lone word-start mark is as far from "po" as "pood" is, and would stand nearer."""
    teacher = pieces(["", "pood"], [4, 9])
    assert pairs(teacher, pieces(["po"], [5])) == [(2, 1)]
    assert pairs(pieces(["po"], [5]), teacher) == [(1, 2)]


def test_long_texts_need_wide_numbers():
    """Distances times gaps beyond 32 bits must not wrap around."""
    far = 2**31 - 2
    words = pieces(["ab", "abx"], [0, far])
    assert pairs(words, words) == [(1, 1), (2, 2)]


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
