"""What holds for all methods, on any text."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emo.alignment import align, methods
from emo.errors import ConfigError

METHODS = ["mined", "mined-types", "mined-masses"]
COLUMNS = ["text", "teacher_position", "student_position", "distance"]
FRAGMENTS = ["the ", "cat", "[CLS]", "<s>", "▁", "e\u0301", "😀", "中", "ing", " ", "++", "ﬁ"]
ANY_TEXT = st.text(max_size=20) | st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join)


def assert_equal(first, second):
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(first, column), getattr(second, column))
    assert first.statistics == second.statistics


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=60, deadline=None)
@given(texts=st.lists(ANY_TEXT, max_size=4))
def test_invariants(method, texts, teacher, student):
    alignment = align(texts, teacher, student, method)
    rows = list(zip(*(getattr(alignment, column).tolist() for column in COLUMNS), strict=True))
    assert rows == sorted(rows)
    assert len({(row[0], row[2]) for row in rows}) == len(rows)
    if method != "mined-masses":
        assert len({(row[0], row[1]) for row in rows}) == len(rows)
    for side, column in ((teacher, 1), (student, 2)):
        tokens = side(texts)
        for row in rows:
            of_text = tokens[row[0]]
            special = [
                flag for flag, out in zip(of_text.special, of_text.prompt, strict=True) if not out
            ]
            assert 0 <= row[column] < len(special)
            assert method == "mined-masses" or not special[row[column]]
    assert 0 <= alignment.statistics.teacher_coverage <= 1
    assert 0 <= alignment.statistics.student_coverage <= 1


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
    monkeypatch.setattr(methods, "TEXTS_PER_CALL", 2)
    assert_equal(align(texts, teacher, student, method), expected)


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
    print(*(getattr(alignment, column).tolist() for column in {COLUMNS}))
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert outputs.pop().count("\n") == len(METHODS)


def test_unknown_method_is_refused_with_a_suggestion(teacher, student):
    with pytest.raises(ConfigError, match="'mined-types'"):
        align([], teacher, student, "mined-type")
    with pytest.raises(ConfigError, match="choose from mined, "):
        align([], teacher, student, "dtw")
