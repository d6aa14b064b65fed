"""The map by place, case by case."""

from dataclasses import replace

import pytest

from emo import tokens
from emo.alignment import align
from emo.alignment.span import SpanPairs
from emo.errors import ConfigError

from .conftest import pieces, rows


def pairs(teacher, student):
    return [row[:2] for row in rows(SpanPairs.pair(teacher, student))]


def test_the_largest_share_of_overlap_wins_whatever_the_letters():
    teacher = pieces(["playing"], [7])
    student = pieces(["play", "ing"], [4, 11])
    found = SpanPairs.pair(teacher, student)
    assert rows(found) == [(1, 1, 3)]
    assert found.ties == 0
    assert pairs(teacher, pieces(["xxxxxxx"], [7])) == [(1, 1)]


def test_equal_overlap_goes_to_the_nearer_middle_then_to_the_lower_index():
    found = SpanPairs.pair(pieces(["ab"], [2]), pieces(["a", "b"], [1, 3]))
    assert (rows(found), found.ties) == ([(1, 1, 1)], 1)
    # Both overlap by 1 of 5 characters; the second one's middle is nearer.
    teacher = pieces(["abc"], [9])  # 3 to 6
    assert pairs(teacher, pieces(["xxx", "abcdefghi"], [5, 9])) == [(1, 2)]


def test_no_overlap_is_never_paired():
    assert pairs(pieces(["the"], [3]), pieces(["the"], [9])) == []
    assert pairs(pieces([""], [4]), pieces([""], [4])) == []


def test_a_fast_tokenizer_without_offsets_is_refused(teacher, student, monkeypatch):
    """Pitfall 27: no pairing by position when the places are missing."""
    encode = tokens.encode_fast

    def without_offsets(*args):
        raw = encode(*args)
        return replace(raw, starts=raw.starts * 0, ends=raw.ends * 0)

    monkeypatch.setattr(tokens, "encode_fast", without_offsets)
    with pytest.raises(ConfigError, match="no character offsets for 't' in the text 'cat the'"):
        align(["cat the"], tokens.TextTokenizer(teacher.tokenizer), student, "span")


def test_a_slow_tokenizer_is_aligned_where_its_tokens_are_found(slow_student, teacher):
    """Pitfall 28: the places are walked for, the prompt is not text."""
    alignment = align(["The cat xyz", "中 ᚠ"], teacher, slow_student, "span")
    strings = slow_student.tokenizer.convert_ids_to_tokens
    paired = [
        strings([slow_student(["The cat xyz"])[0].input_ids[position + 2]])[0]
        for text, position in zip(alignment.text, alignment.student_position, strict=True)
        if text == 0
    ]
    assert paired[:2] == ["the", "cat"]
    assert (alignment.text == 1).any()
