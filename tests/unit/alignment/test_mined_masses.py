"""The paper's transport map, case by case."""

from emo.alignment import align
from emo.alignment.mined_masses import MinedMassPairs, nearest_strings
from emo.alignment.shown import ShownTokens

from .conftest import rows


def shown(words, opener=None):
    return ShownTokens(words, [word == opener for word in words], opener)


def test_later_tokens_overwrite_on_all_their_targets():
    pairs = MinedMassPairs.pair(
        shown(["<s>", "a", "b", "a"], "<s>"), shown(["[CLS]", "a", "a"], "[CLS]")
    )
    assert rows(pairs) == [(0, 0, 0), (3, 1, 0), (3, 2, 0)]


def test_many_teacher_strings_may_share_a_target():
    pairs = MinedMassPairs.pair(shown(["aab", "aac"]), shown(["aa", "zzzzz"]))
    assert rows(pairs) == [(1, 0, 1)]


def test_only_the_opener_reaches_the_opener():
    targets = nearest_strings(shown(["<s>", "[CLS"], "<s>"), shown(["[CLS]", "x"], "[CLS]"))
    assert {source: target.string for source, target in targets.items()} == {
        "<s>": "[CLS]",
        "[CLS": "x",
    }


def test_teacher_without_opener_leaves_the_student_opener_unhit():
    """A teacher that only appends a special (Qwen3) has nothing to fix."""
    pairs = MinedMassPairs.pair(shown(["a", "<|end|>"]), shown(["[CLS]", "a", "[SEP]"], "[CLS]"))
    assert 0 not in pairs.student_position


def test_ties_go_to_the_first_in_sorted_order():
    pairs = MinedMassPairs.pair(shown(["bat"]), shown(["mat", "hat"]))
    assert rows(pairs) == [(0, 1, 1)]
    assert pairs.ties == 1


def test_texts_of_special_tokens_only_keep_the_specials(teacher, student):
    alignment = align([""], teacher, student, "mined-masses")
    assert alignment.teacher_position.tolist() == [0, 1]
    assert alignment.student_position.tolist() == [0, 1]


def test_student_of_opener_only_gets_the_opener():
    pairs = MinedMassPairs.pair(shown(["<s>", "a"], "<s>"), shown(["[CLS]"], "[CLS]"))
    assert rows(pairs) == [(0, 0, 0)]
