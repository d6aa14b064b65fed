"""Texts and tokenizers of which public reports say that alignments fail on them."""

import unicodedata

import numpy as np
import pytest

from emo.alignment import align
from emo.texts import joined
from emo.tokens import TextTokenizer

OCCURRENCES = ["mined", "mined-dp", "span"]


def shown(alignment, texts, teacher, student):
    """List the slices of the text that paired tokens cover."""
    tokens = teacher(texts), student(texts)
    pairs = []
    for row, of_teacher, of_student in zip(
        alignment.text, alignment.teacher_position, alignment.student_position, strict=True
    ):
        sides = []
        for side, position in zip(tokens, (of_teacher, of_student), strict=True):
            start, end = side[row].spans[side[row].places[position]]
            sides.append(joined(texts[row])[start:end])
        pairs.append(tuple(sides))
    return pairs


@pytest.mark.parametrize("method", OCCURRENCES)
def test_bos_on_one_side_only(method, fallback_teacher, byte_teacher):
    """Pitfall 26: a special token in front must not shift or merge the groups behind it."""
    texts = ["are you ok?", "hello world"]
    for teacher, student in (
        (fallback_teacher, byte_teacher),
        (byte_teacher, fallback_teacher),
    ):
        alignment = align(texts, teacher, student, method)
        pairs = shown(alignment, texts, teacher, student)
        assert len(pairs) > 3
        assert all(set(one) & set(other) for one, other in pairs)


@pytest.mark.parametrize("method", OCCURRENCES)
def test_composed_and_decomposed_text_have_the_same_pairs(method, student):
    """Pitfall 39: the words of a text do not hang on how its accents are written."""
    plain = "the été cat naïve"
    texts = [unicodedata.normalize(form, plain) for form in ("NFC", "NFD")]
    pairs = shown(align(texts, student, student, method), texts, student, student)
    # Offsets leave combining marks out, so only the letters below them can be compared.
    words = [unicodedata.normalize("NFD", one).replace("\u0301", "") for one, _ in pairs]
    words = [word.replace("\u0308", "") for word in words]
    assert words[: len(words) // 2] == words[len(words) // 2 :]


@pytest.mark.parametrize("method", ["mined-dp", "span"])
@pytest.mark.parametrize(
    "text",
    [
        "T\x10his \x10 is the cat",
        "et La Société………don't",
        "A, naïve [MASK] AllenNLP sentence.",
    ],
)
def test_control_characters_dots_and_masks_do_not_shift_what_follows(
    method, text, teacher, fallback_teacher, student
):
    """Pitfalls 37 and 38: the last word still meets at its own place."""
    for side in (teacher, fallback_teacher):
        one, other = shown(align([text], side, student, method), [text], side, student)[-1]
        assert one
        assert one in other
        assert text.endswith(other)


def test_a_long_prompt_takes_none_of_the_students_text(teacher, student):
    """Pitfall 29: each side has its own prompt and length."""
    long = TextTokenizer(teacher.tokenizer, "query " * 30 + ": ", max_length=512)
    short = TextTokenizer(student.tokenizer, max_length=12)
    text = "the cat plays hello world"
    alignment = align([text], long, short, "mined")
    whole = align([text], teacher, TextTokenizer(student.tokenizer), "mined")
    for column in ("teacher_position", "student_position", "distance"):
        np.testing.assert_array_equal(getattr(alignment, column), getattr(whole, column))


@pytest.mark.parametrize("method", OCCURRENCES)
def test_truncation_leaves_the_tokens_that_both_read(method, teacher, fallback_teacher, student):
    """One side loses its end, the other its start; what is left meets at its place."""
    text = "hello cat the world is playing there"
    short = TextTokenizer(student.tokenizer, max_length=6)
    pairs = shown(align([text], teacher, short, method), [text], teacher, short)
    assert ("the", "the") in pairs
    left = TextTokenizer(fallback_teacher.tokenizer, max_length=12)
    assert left.tokenizer.truncation_side == "left"
    ends = shown(align([text], left, student, method), [text], left, student)
    assert ends
    assert all(pair[0] in "the world is playing there" for pair in ends)


def test_added_tokens_behind_the_vocabulary_are_mapped(fallback_teacher, student):
    """Pitfalls 10, 11 and 31: ids above the vocabulary, and words that differ in case only."""
    text = "ELLE"
    inner = fallback_teacher.tokenizer
    assert inner.convert_tokens_to_ids("ELLE") >= inner.vocab_size
    alignment = align([text], fallback_teacher, student, "mined")
    first = fallback_teacher([text])[0]
    added = np.flatnonzero(first.input_ids[first.places] == inner.convert_tokens_to_ids("ELLE"))
    assert set(added) <= set(alignment.teacher_position)


def test_one_token_for_unknown_padding_and_end(byte_teacher, student):
    """Pitfalls 9 and 43: special is what the tokenizer added, whatever its id."""
    text = "<|end|> the cat <|end|>"
    tokens = byte_teacher([text])[0]
    assert (tokens.input_ids == byte_teacher.tokenizer.pad_token_id).sum() == 3
    assert np.flatnonzero(tokens.special).tolist() == [len(tokens.special) - 1]
    alignment = align([text], byte_teacher, student, "mined")
    assert len(tokens.input_ids) - 1 not in alignment.teacher_position


@pytest.mark.parametrize("method", OCCURRENCES)
def test_texts_of_one_token_or_none(method, teacher, student, byte_teacher, slow_student):
    """Pitfalls 47 and 86."""
    texts = ["", "a", "?", "😀", "\u200b", "中", " "]
    for one in (teacher, byte_teacher):
        for other in (student, slow_student):
            alignment = align(texts, one, other, method)
            assert 0 not in alignment.text
            assert {1, 2} <= set(alignment.text)


@pytest.mark.parametrize("method", OCCURRENCES)
def test_sentence_pairs_meet_sentence_by_sentence(method, teacher, student, slow_student):
    """The same word in both sentences must find its own."""
    texts = [("the cat", "the world"), ("", "the cat"), ("the cat", "")]
    for other in (student, slow_student):
        tokens = teacher(texts), other(texts)
        alignment = align(texts, teacher, other, method)
        pairs = shown(alignment, texts, teacher, other)
        assert pairs.count(("the", "the")) == 4
        for row, position, place in zip(
            alignment.text, alignment.teacher_position, alignment.student_position, strict=True
        ):
            starts = [
                side[row].spans[side[row].places[where], 0]
                for side, where in zip(tokens, (position, place), strict=True)
            ]
            seam = len(texts[row][0])
            assert (starts[0] > seam) == (starts[1] > seam)
