"""What holds for all methods, on any text."""

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emo import tokens
from emo.alignment import (
    align,
    align_tokens,
    known_pieces,
    methods,
    normalisers,
    padded,
    pair_finder,
)
from emo.errors import ConfigError

METHODS = list(methods.METHODS)
COLUMNS = ["text", "teacher_position", "student_position", "distance"]
FRAGMENTS = ["the ", "cat", "[CLS]", "<s>", "▁", "e\u0301", "😀", "中", "ing", " ", "++", "ﬁ"]
FRAGMENTS += ["👩‍👩‍👧", "\x10", "…", "ELLE", "naïve [MASK]"]
ENCODABLE = st.characters(exclude_categories=["Cs"])
ANY_TEXT = st.text(ENCODABLE, max_size=20) | st.lists(st.sampled_from(FRAGMENTS), max_size=8).map(
    "".join
)
ANY_PAIR = st.tuples(ANY_TEXT, ANY_TEXT)


def assert_equal(first, second):
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(first, column), getattr(second, column))
    assert first.statistics == second.statistics


def assert_invariants(texts, teacher, student, method):
    alignment = align(texts, teacher, student, method)
    rows = list(zip(*(getattr(alignment, column).tolist() for column in COLUMNS), strict=True))
    assert rows == sorted(rows)
    assert len({(row[0], row[2]) for row in rows}) == len(rows)
    if method != "mined-masses":
        assert len({(row[0], row[1]) for row in rows}) == len(rows)
    if method == "mined-dp":
        for first, second in pairwise(rows):
            assert first[0] < second[0] or first[2] < second[2]
    for side, column in ((teacher, 1), (student, 2)):
        tokens = side(texts)
        for row in rows:
            special = tokens[row[0]].special[tokens[row[0]].places]
            assert 0 <= row[column] < len(special)
            assert method == "mined-masses" or not special[row[column]]
    statistics = alignment.statistics
    assert 0 <= statistics.teacher_coverage <= 1
    assert 0 <= statistics.student_coverage <= 1
    assert 0 <= statistics.student_unmapped == statistics.student_tokens - len(rows)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=60, deadline=None)
@given(texts=st.lists(ANY_TEXT | ANY_PAIR, max_size=4))
def test_invariants(method, texts, teacher, student):
    assert_invariants(texts, teacher, student, method)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=20, deadline=None)
@given(texts=st.lists(ANY_TEXT | ANY_PAIR, max_size=4))
def test_invariants_of_bytes_and_slow_tokenizers(
    method, texts, byte_teacher, fallback_teacher, slow_student
):
    for teacher in (byte_teacher, fallback_teacher):
        assert_invariants(texts, teacher, slow_student, method)


@pytest.mark.parametrize("method", ["mined", "mined-dp", "span"])
def test_a_tokenizer_maps_onto_itself(
    method, teacher, student, byte_teacher, fallback_teacher, slow_student
):
    """Pitfalls 26 and 32: no BOS, prompt or padding side moves a pair by one."""
    texts = ["the cat is playing", "hello world, hello", ("the cat", "the world"), "don't stop"]
    for tokenizer in (teacher, student, byte_teacher, fallback_teacher, slow_student):
        alignment = align(texts, tokenizer, tokenizer, method)
        np.testing.assert_array_equal(alignment.teacher_position, alignment.student_position)
        assert not alignment.distance.any()
        visible = [
            (np.diff(text.spans[~(text.prompt | text.special)]) > 0).sum()
            for text in tokenizer(texts)
        ]
        assert len(alignment.text) > 0.8 * sum(visible)  # a lone mark shows nothing


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(ANY_TEXT, max_size=3))
def test_spans_meet_whichever_side_is_the_teacher(texts, student, byte_teacher):
    forth = align(texts, byte_teacher, student, "span")
    back = align(texts, student, byte_teacher, "span")
    pairs = zip(forth.text, forth.student_position, forth.teacher_position, strict=True)
    assert sorted(pairs) == list(
        zip(back.text, back.teacher_position, back.student_position, strict=True)
    )


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=30, deadline=None)
@given(texts=st.lists(ANY_TEXT, min_size=1, max_size=4))
def test_each_text_is_aligned_as_if_alone(method, texts, teacher, student):
    together = align(texts, teacher, student, method)
    assert_equal(together, align(texts, teacher, student, method))
    for index, text in enumerate(texts):
        alone = align([text], teacher, student, method)
        for column in COLUMNS[1:]:
            np.testing.assert_array_equal(
                getattr(together, column)[together.text == index], getattr(alone, column)
            )


@pytest.mark.parametrize("method", METHODS)
def test_number_of_texts_per_call_does_not_matter(method, teacher, student, monkeypatch):
    texts = ["the cat", "", "hello world", "C++ vs C#", "😀"]
    expected = align(texts, teacher, student, method)
    for module, name in (
        (methods, "TEXTS_PER_BLOCK"),
        (tokens, "TEXTS_PER_CALL"),
        (padded, "CELLS"),
        (known_pieces, "CACHED_PIECES"),
        (normalisers, "CACHED_STRINGS"),
    ):
        monkeypatch.setattr(module, name, 2)
        assert_equal(align(texts, teacher, student, method), expected)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_the_texts_does_not_matter(method, teacher, student):
    texts = [*FRAGMENTS, "the cat", "", "hello world", "C++ vs C#", "the the the cat"]
    there, back = (
        align(texts, teacher, student, method),
        align(texts[::-1], teacher, student, method),
    )
    for index in range(len(texts)):
        for column in COLUMNS[1:]:
            np.testing.assert_array_equal(
                getattr(there, column)[there.text == index],
                getattr(back, column)[back.text == len(texts) - 1 - index],
            )


@pytest.mark.parametrize("method", METHODS)
def test_tokens_at_hand_give_the_same(method, teacher, student):
    texts = ["the cat", ("hello", "world"), "😀"]
    found = align_tokens(
        texts, teacher(texts), student(texts), pair_finder(teacher, student, method)
    )
    expected = align(texts, teacher, student, method)
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(found, column), getattr(expected, column))


def test_same_pairs_in_every_process(tmp_path, teacher, student):
    """Pitfall 45: the paper's sets of strings gave other pairs under other hash seeds."""
    teacher.tokenizer.save_pretrained(tmp_path / "teacher")
    student.tokenizer.save_pretrained(tmp_path / "student")
    program = f"""
from transformers import PreTrainedTokenizerFast
from emo.alignment import align
from emo.tokens import TextTokenizer
teacher, student = (
    TextTokenizer(PreTrainedTokenizerFast.from_pretrained(f"{tmp_path}/{{side}}"))
    for side in ("teacher", "student")
)
texts = ["bat hat mat cat", "xyz xzy zyx yxz", "12 21 2 1 12", "C++ vs C# 😀"]
for method in {METHODS}:
    alignment = align(texts, teacher, student, method)
    print(*(getattr(alignment, column).tolist() for column in {COLUMNS}), alignment.origin)
"""
    asked = [("1", "false"), ("2", "true"), ("3", "false"), ("4", "true")]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed, "TOKENIZERS_PARALLELISM": parallel},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed, parallel in asked
    ]
    outputs = {process.communicate()[0] for process in running}
    assert not any(process.returncode for process in running)
    assert len(outputs) == 1
    assert outputs.pop().count("\n") == len(METHODS)


def test_unknown_method_is_refused_with_a_suggestion(teacher, student):
    with pytest.raises(ConfigError, match="'mined-types'"):
        align([], teacher, student, "mined-type")
    with pytest.raises(ConfigError, match="choose from mined, "):
        align([], teacher, student, "dtw")
