"""Tokens with their marks, and which of them opens the text."""

from dataclasses import replace

import numpy as np

from emo.alignment.shown import ShownReader


def test_opener_is_the_one_the_tokenizer_added(teacher, student):
    shown = ShownReader(teacher)(teacher(["<s> a"])[0])
    assert shown.strings == ["<s>", "<s>", "▁", "a", "</s>"]
    assert shown.special == [True, False, False, False, True]
    assert (shown.opener, ShownReader(student)(student(["a"])[0]).opener) == ("<s>", "[CLS]")


def test_opener_in_the_text_only_opens_nothing(teacher):
    """Pitfall 33: with the added tokens off, the "<s>" of the text is just text."""
    tokenized = teacher(["<s> a"])[0]
    as_text = replace(tokenized, special=np.zeros_like(tokenized.special))
    assert ShownReader(teacher)(as_text).opener is None


def test_tokenizer_that_only_appends_has_no_opener(byte_teacher):
    """Pitfall 43: the appended token is the pad token, and still special by its mask."""
    shown = ShownReader(byte_teacher)(byte_teacher(["are"])[0])
    assert (shown.opener, shown.special[-1]) == (None, True)
    assert not any(shown.special[:-1])
