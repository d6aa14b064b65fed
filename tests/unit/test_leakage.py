import pytest

from emo.leakage import normalised, normalised_set, usable


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u200b", "\ufeff\u00a0", "\x00\x10", "\u2028"])
def test_a_text_without_visible_characters_is_unusable(text):
    assert not usable(text)


@pytest.mark.parametrize("text", ["a", " ? ", "\u200b\U0001f600", "\u0301"])
def test_a_text_with_one_visible_character_is_usable(text):
    assert usable(text)


def test_case_width_punctuation_and_spacing_do_not_make_texts_differ():
    forms = ["A man's  dog.", "a MAN\u2019S dog", "\uff21 man s\tdog!!", " a man-s dog "]
    assert {normalised(form) for form in forms} == {"a man s dog"}


def test_letters_digits_and_accents_make_texts_differ():
    forms = ["\u00e9te", "ete", "ete 2", "ete 3"]
    assert len({normalised(form) for form in forms}) == 4


def test_composed_and_decomposed_accents_are_the_same():
    assert normalised("e\u0301te\u0301") == normalised("\u00e9t\u00e9") == "\u00e9t\u00e9"


def test_normalising_twice_changes_nothing():
    for text in ["Stra\u00dfe", "\u0130stanbul", "\ufb01ne", "\u1e9e\u0345", "x\u00b2"]:
        assert normalised(normalised(text)) == normalised(text)


def test_texts_without_letters_differ_by_all_but_whitespace():
    """An emoji on both sides is a leak too."""
    forms = [" ?! ", "\uff1f !", "\U0001f600", "A.", "a"]
    assert normalised_set(forms) == {"?!", "\U0001f600", "a"}
    assert normalised("?!") != normalised("!?")
