"""Pieces are what two tokenizers can compare: characters of the text, free of marks."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tokenizers import Tokenizer

from emo import tokens
from emo.alignment.pieces import for_teacher_student
from emo.errors import ConfigError
from emo.tokens import TextTokenizer


def read(text, teacher, student):
    readers = for_teacher_student(teacher, student)
    return tuple(
        reader.read([text], tokenizer([text]))
        for reader, tokenizer in zip(readers, (teacher, student), strict=True)
    )


def test_marks_case_and_prompt_are_gone(teacher, student):
    of_teacher, of_student = read("The playing", teacher, student)
    assert of_teacher.strings == ["t", "h", "e", "play", "ing"]
    assert of_student.strings == ["the", "play", "ing"]
    assert of_teacher.positions.tolist() == [1, 2, 3, 4, 5]
    assert of_student.positions.tolist() == [1, 2, 3]
    assert of_student.middles.tolist() == [3, 12, 19]


def test_composed_and_decomposed_accents_are_the_same_piece(teacher, student):
    """Pitfall 39: offsets skip combining marks, so slices alone would differ."""
    composed, _ = read("été", teacher, student)
    decomposed, _ = read("e\u0301te\u0301", teacher, student)
    assert composed.strings == decomposed.strings == ["ete"]


def test_pieces_are_composed_where_the_student_does_not_normalise(student, byte_teacher):
    of_student, _ = read("😀e\u0301x", student, byte_teacher)
    assert of_student.strings == ["😀éx"]


def test_lone_mark_does_not_borrow_the_letter_it_overlaps(teacher, student):
    """Pitfall 40: "▁" claims the span of the letter after it when no space stands there."""
    plain = TextTokenizer(teacher.tokenizer)
    assert plain(["ok"])[0].spans[1:3].tolist() == [[0, 1], [0, 1]]
    assert read("ok", plain, student)[0].strings == ["", "o", "k"]


def test_expanded_characters_fall_back_to_the_token(teacher, student):
    """Pitfall 37: all three dots of "…" and both letters of a ligature cover one character."""
    of_teacher, _ = read("ﬁ…", teacher, student)
    assert of_teacher.strings == ["f", "i", ".", ".", "."]


def test_unknown_tokens_show_the_text_they_cover(teacher, student):
    of_teacher, of_student = read("ok 😀", teacher, student)
    assert of_teacher.strings[-1] == of_student.strings[-1] == "😀"


def test_bytes_are_decoded_and_fragments_show_the_whole_character(byte_teacher, student):
    of_teacher, _ = read("are café 😀", byte_teacher, student)
    assert "are" in of_teacher.strings[0]
    assert of_teacher.strings[-4:] == ["😀"] * 4
    assert not any("Ġ" in piece or "Ã" in piece for piece in of_teacher.strings)


def test_chinese_pieces_get_no_blanks_from_the_student_normaliser(teacher, student):
    of_teacher, of_student = read("中文", teacher, student)
    assert of_teacher.strings == ["中文"]
    assert of_student.strings == ["中", "文"]


def test_a_slow_student_that_lower_cases_meets_a_lower_cased_teacher(teacher, slow_student):
    of_teacher, of_student = read("The ÉTÉ cat", teacher, slow_student)
    assert of_teacher.strings[:3] == ["t", "h", "e"]
    assert "".join(of_teacher.strings) == "".join(of_student.strings) == "theetecat"


def test_literal_special_strings_are_text(teacher, student):
    """Pitfall 33: they get the special's id, but stand in the text."""
    of_teacher, of_student = read("<s> a [CLS]", teacher, student)
    assert "<s>" in of_teacher.strings
    assert of_student.strings == ["<", "s", ">", "a", "[cls]"]


def test_zero_length_offsets_are_rebuilt(byte_teacher, student, monkeypatch):
    """Pitfall 36: stored Llama 3 tokenizers gave (0, 0), (3, 3), ... ; the pieces must not care."""
    text = "are you ok?"
    right = byte_teacher([text])[0]
    encode = tokens.encode_fast

    def collapsed(*args):
        raw = encode(*args)
        return replace(raw, ends=raw.starts)

    monkeypatch.setattr(tokens, "encode_fast", collapsed)
    rebuilt = byte_teacher([text])[0]
    np.testing.assert_array_equal(rebuilt.spans, right.spans)
    assert all(start < end for start, end in rebuilt.spans[:-1])


def test_missing_decoder_is_refused(student):
    tokenizer = TextTokenizer(type(student.tokenizer)(tokenizer_object=without_decoder(student)))
    readers = for_teacher_student(tokenizer, student)
    with pytest.raises(ConfigError, match="no decoder"):
        readers[0].read(["cat"], tokenizer(["cat"]))


def without_decoder(tokenizer):
    """Copy the backend by way of its file form, with the decoder taken out."""
    stored = json.loads(tokenizer.tokenizer.backend_tokenizer.to_str())
    return Tokenizer.from_str(json.dumps(stored | {"decoder": None}))
