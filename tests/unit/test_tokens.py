"""Texts become tokens exactly as the models read them, each with its mark."""

import copy

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast
from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

from emo import tokens
from emo.errors import ConfigError
from emo.texts import joined
from emo.tokens import TextTokenizer

WORDS = ["▁", "▁he", "▁hello", "llo", "▁query:", "▁world", "y:w", *"abcdefghijklmnopqrstuvwxyz:"]


@pytest.fixture(scope="module")
def tokenizer():
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)]
    pieces += [(word, -8.0 if len(word) == 1 else -4.0) for word in WORDS]
    backend = Tokenizer(models.Unigram(pieces, 0, False))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> $B </s>",
        special_tokens=[("<s>", 1), ("</s>", 2)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def strings(tokenizer, tokenized):
    return tokenizer.convert_ids_to_tokens(list(tokenized.input_ids))


def test_spans_count_from_the_text_without_prompt_or_space(tokenizer):
    tokenized = TextTokenizer(tokenizer, "query: ")(["hello world"])[0]
    assert strings(tokenizer, tokenized) == ["<s>", "▁query:", "▁hello", "▁world", "</s>"]
    assert tokenized.prompt.tolist() == [False, True, False, False, False]
    assert tokenized.special.tolist() == [True, False, False, False, True]
    assert tokenized.spans.tolist() == [[0, 0], [0, 0], [0, 5], [6, 11], [0, 0]]


def test_token_across_the_seam_is_text(tokenizer):
    """Pitfall 28: a token at the prompt's end is kept once, with its share of the text."""
    tokenized = TextTokenizer(tokenizer, "aay")([":w"])[0]
    assert strings(tokenizer, tokenized) == ["<s>", "▁", "a", "a", "y:w", "</s>"]
    assert tokenized.prompt.tolist() == [False, True, True, True, False, False]
    assert tokenized.spans[4].tolist() == [0, 2]


def test_literal_specials_are_text(tokenizer):
    """Pitfall 33: the id is the special's, the mask is not."""
    tokenized = TextTokenizer(tokenizer)(["a <s> b"])[0]
    assert (tokenized.input_ids == 1).sum() == 2
    assert np.flatnonzero(tokenized.special).tolist() == [0, len(tokenized.special) - 1]
    assert [2, 5] in tokenized.spans.tolist()


def test_only_space_has_an_empty_span(tokenizer):
    tokenized = TextTokenizer(tokenizer)([" "])[0]
    assert tokenized.spans.tolist() == [[0, 0], [1, 1], [0, 0]]
    assert not any(tokenized.prompt)


@pytest.mark.parametrize("prompt", ["", "query: "])
@pytest.mark.parametrize("max_length", [4, 512])
def test_ids_equal_the_tokenizer_on_prompt_and_text(tokenizer, prompt, max_length):
    texts = ["hello world hello", "", " hello ", "<s> zebra"]
    read = TextTokenizer(tokenizer, prompt, max_length)(texts)
    for text, tokenized in zip(texts, read, strict=True):
        alone = tokenizer(prompt + text, truncation=True, max_length=max_length)
        assert list(tokenized.input_ids) == alone["input_ids"]
        assert len(tokenized.input_ids) == len(tokenized.spans) == len(tokenized.prompt)


def test_stored_padding_and_truncation_are_ignored(tokenizer):
    tokenizer.backend_tokenizer.enable_padding(length=30)
    tokenizer.backend_tokenizer.enable_truncation(3)
    assert len(TextTokenizer(tokenizer)(["hello world"])[0].input_ids) == 4


def test_no_texts(tokenizer):
    assert TextTokenizer(tokenizer)([]) == []


def test_prompt_without_room_for_text_is_refused(tokenizer):
    """Pitfall 29: a prompt must never push out the whole text."""
    with pytest.raises(ConfigError, match="take 3 tokens of max_length 3"):
        TextTokenizer(tokenizer, "query:", max_length=3)


@pytest.fixture
def slow(tmp_path):
    """A tokenizer in Python, as few models still have."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "play", "##ing", "na"]
    words += ["##ive", "query", ":", "a"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    return lambda **options: BertTokenizerLegacy(str(tmp_path / "vocab.txt"), **options)


def shown(tokenized, text):
    whole = joined(text)
    return [whole[start:end] for start, end in tokenized.spans]


def test_slow_tokenizer_finds_its_places_with_one_notice(slow, caplog):
    """Pitfall 28: no offsets, so the text is walked; what is not found has an empty span."""
    tokenizer = TextTokenizer(slow(), "query: ")
    first, second = tokenizer(["The cat  xyz playing naïve", "[CLS] the"])
    assert shown(first, "The cat  xyz playing naïve") == [
        *("", "", "", "The", "cat", "", "play", "ing", "na", "ïve", "")
    ]
    assert np.flatnonzero(first.prompt).tolist() == [1, 2]
    assert shown(second, "[CLS] the")[3:] == ["[CLS]", "the", ""]
    assert len(caplog.records) == 1
    assert "slow" in caplog.text


def test_surface_has_no_marks(tokenizer):
    marked = tokenizer.convert_tokens_to_ids(["▁hello", "llo", "▁", "<s>"])
    assert [TextTokenizer(tokenizer).surface(token) for token in marked] == [
        "hello",
        "llo",
        "",
        "<s>",
    ]


def test_pairs_are_one_sequence_with_the_prompt_before_the_first(tokenizer):
    pair = ("hello world", "hello")
    read = TextTokenizer(tokenizer, "query: ")([pair, "hello"])
    joint = tokenizer("query: hello world", "hello")
    assert read[0].input_ids.tolist() == joint["input_ids"]
    assert [word for word in shown(read[0], pair) if word] == ["hello", "world", "hello"]
    assert read[0].spans[-2].tolist() == [12, 17]
    assert read[1].input_ids.tolist() == tokenizer("query: hello")["input_ids"]


def test_a_pair_loses_the_longer_text_first(tokenizer):
    pair = ("hello " * 9, "world")
    read = TextTokenizer(tokenizer, max_length=6)([pair])[0]
    alone = tokenizer(*pair, truncation=True, max_length=6)
    assert read.input_ids.tolist() == alone["input_ids"]
    assert "world" in shown(read, pair)


def test_a_text_that_is_cut_at_its_start_keeps_its_places(tokenizer, slow):
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.truncation_side = "left"
    text = "hello hello world"
    assert "world" in shown(TextTokenizer(tokenizer, max_length=4)([text])[0], text)
    text = "cat " * 40 + "the playing"
    left = TextTokenizer(slow(truncation_side="left"), max_length=6)([text])[0]
    assert shown(left, text) == ["", "cat", "the", "play", "ing", ""]
    assert left.spans[2].tolist() == [160, 163]


def test_bytes_of_a_slow_tokenizer_share_the_span_of_their_character():
    text = "aé😀 b"
    read = TextTokenizer(ByT5Tokenizer())([text])[0]
    assert shown(read, text) == ["a", *["é"] * 2, *["😀"] * 4, "", "b", ""]


def test_an_unknown_token_at_the_seam_of_a_prompt_is_text(slow):
    """Pitfall 28: a boundary token is kept once, whatever is known of its place."""
    read = TextTokenizer(slow(), "query: ")(["xyz the", "xyz"])
    assert [np.flatnonzero(text.prompt).tolist() for text in read] == [[1, 2], [1, 2]]


def test_slow_pairs_find_each_text(slow):
    pair = ("the cat", "cat the")
    read = TextTokenizer(slow(), "query: ")([pair, ("", "cat")])
    assert shown(read[0], pair) == ["", "", "", "the", "cat", "", "cat", "the", ""]
    assert read[0].spans[6:8].tolist() == [[8, 11], [12, 15]]
    assert read[1].spans[4].tolist() == [1, 4]
    long = ("cat " + "the " * 9, "the cat")
    cut = TextTokenizer(slow(), max_length=7)([long])[0]
    assert shown(cut, long) == ["", "cat", "the", "", "the", "cat", ""]
    assert cut.spans[4].tolist() == [41, 44]


def test_the_digest_changes_with_what_decides_tokens(tokenizer, slow):
    one = TextTokenizer(tokenizer, "query: ")
    assert one.digest == TextTokenizer(copy.deepcopy(tokenizer), "query: ").digest
    called = TextTokenizer(tokenizer, "query: ")
    called(["hello"])
    assert called.digest == one.digest, "calls leave no trace"
    left = copy.deepcopy(tokenizer)
    left.truncation_side = "left"
    more = copy.deepcopy(tokenizer)
    more.add_tokens(["zebra"])
    others = [
        TextTokenizer(tokenizer, "query:"),
        TextTokenizer(tokenizer, "query: ", 99),
        TextTokenizer(left, "query: "),
        TextTokenizer(more, "query: "),
        TextTokenizer(slow(), "query: "),
    ]
    digests = {one.digest, *(other.digest for other in others)}
    assert len(digests) == 6
    assert TextTokenizer(slow()).digest == TextTokenizer(slow()).digest


def test_block_size_does_not_matter(tokenizer, monkeypatch):
    texts = ["hello", "", " world\n", ("hello", " "), "query: 😀"]
    whole = TextTokenizer(tokenizer, "query: ")(texts)
    monkeypatch.setattr(tokens, "TEXTS_PER_CALL", 2)
    for one, other in zip(whole, TextTokenizer(tokenizer, "query: ")(texts), strict=True):
        for name in ("input_ids", "prompt", "special", "spans"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
