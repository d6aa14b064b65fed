"""Missing, doubled and cut-off begin and end tokens; a pooled token that is another."""

import json

import pytest

from emo.doctor.prompt import check_prompt
from emo.doctor.specials import check_specials
from emo.doctor.subject import load_subject

from .conftest import TEXTS
from .test_invariance import ByIndex


def edited(folder, change):
    path = folder / "tokenizer.json"
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))
    return load_subject(folder, TEXTS, "float32")


def template(stored):
    steps = stored["post_processor"].get("processors", [stored["post_processor"]])
    return next(step for step in steps if step["type"] == "TemplateProcessing")


def without_template(stored):
    stored["post_processor"] = None


def without_end(stored):
    template(stored)["single"].pop()


def ends_twice(stored):
    template(stored)["single"].append(template(stored)["single"][-1])


def begins_twice(stored):
    template(stored)["single"].insert(0, template(stored)["single"][0])


@pytest.mark.parametrize(
    ("make", "change", "said"),
    [
        ("qwen3", without_end, "a text should end with one `<|endoftext|>` and does not"),
        ("causal-last", without_end, "a text should end with one `</s>` and does not"),
        ("causal-last", ends_twice, "a text should end with one `</s>` and does twice"),
        # As DeBERTa-v2 in transformers 5, pitfall 42.
        ("bert", without_template, "a text should begin with one `[CLS]` and does not"),
        ("bert", begins_twice, "a text should begin with one `[CLS]` and does twice"),
        ("xlm-roberta", without_end, "a text should end with one `</s>` and does not"),
    ],
)
def test_a_token_that_is_missing_or_doubled_fails(copied, make, change, said):
    finding = check_specials(edited(copied(make), change))
    assert (finding.status, finding.meaning) == ("failed", said)
    assert finding.remedy


@pytest.mark.parametrize(
    ("place", "said"), [(0, "begin with one `<s>`"), (-1, "end with one `</s>`")]
)
def test_a_token_that_cutting_loses_fails(subject, monkeypatch, place, said):
    found = subject("causal-last")
    tokenizer = found.encoder.tokenizer

    def losing():
        def tokenize(texts):
            tokenized = tokenizer()(texts)
            tokenized[1].input_ids[place] = 7
            return tokenized

        return tokenize

    monkeypatch.setattr(found.encoder, "tokenizer", losing)
    finding = check_specials(found)
    assert finding.meaning == f"a text that is cut should {said} and does not"


def test_last_token_pooling_without_an_end_token_warns(subject):
    found = subject("causal-mean")
    found.encoder.model[1] = type(found.encoder.model[1])(32, "lasttoken")
    finding = check_specials(found)
    assert (finding.status, "whatever a text ends with" in finding.meaning) == ("warning", True)


def test_a_pooled_state_that_is_not_the_last_tokens_fails(subject):
    found = subject("causal-last")
    found.encoder.model[1] = ByIndex(32, "the last column")
    finding = check_specials(found)
    assert (finding.status, "not that of a text's last token" in finding.meaning) == (
        "failed",
        True,
    )


@pytest.mark.parametrize("prompt", ["query: query: ", ""])
def test_a_prompt_that_is_doubled_or_missing_fails(copied, prompt):
    folder = copied("xlm-roberta")
    path = folder / "config_sentence_transformers.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {"prompts": {"default": prompt}}))
    finding = check_prompt(load_subject(folder, TEXTS, "float32"))
    assert (finding.status, "does not read the prompt 'query: ' once" in finding.meaning) == (
        "failed",
        True,
    )


def test_a_prompt_that_only_sentence_transformers_adds_fails(subject, monkeypatch):
    found = subject("xlm-roberta")
    model = found.encoder.model
    encode = model.encode
    monkeypatch.setattr(model, "encode", lambda texts, **_: encode(["query: " + texts[0]]))
    finding = check_prompt(found)
    assert (finding.status, finding.meaning.startswith("SentenceTransformer does")) == (
        "failed",
        True,
    )


def test_a_prompt_of_the_folders_own_is_declared_by_it(subject, declare):
    settings = {"format": "sentence-transformers", "prompt": "", "pooling": None}
    assert check_prompt(declare(subject("xlm-roberta"), **settings)).status == "passed"


def test_other_vectors_of_sentence_transformers_fail(subject):
    found = subject("bert")
    found.reference.sentence[3] *= -1
    finding = check_prompt(found)
    assert (finding.status, "different vectors" in finding.meaning) == ("failed", True)
