"""The paper's rewritten texts."""

from emo.alignment import content_text, paper_texts
from emo.tokens import TextTokenizer


def test_paper_text_loses_case_punctuation_and_unknown_tokens(student):
    """Pitfall 48: kept on purpose in the paper's form."""
    assert paper_texts(["The CAT, 😀 c++"], student)[0].split() == ["the", "cat", "c"]


def test_paper_text_leaves_the_prompt_out_and_ends_where_the_student_stops(student):
    short = TextTokenizer(student.tokenizer, prompt="query:", max_length=6)
    assert paper_texts(["the cat the cat"], short) == ["the cat"]


def test_content_text_of_stop_words_only_is_empty():
    assert content_text("The of . 42") == ""


def test_content_text_keeps_words_with_a_full_stop():
    assert content_text("Stop. now running 2x") == "Stop. running x"


def test_a_pair_becomes_one_text(student):
    """The authors decode the joint sequence; what follows is a single text."""
    rewritten = paper_texts([("The cat!", "hello, world"), "the"], student)
    assert [text.split() for text in rewritten] == [["the", "cat", "hello", "world"], ["the"]]
    assert rewritten[0] == paper_texts([("The cat!", "hello, world")], student)[0]
