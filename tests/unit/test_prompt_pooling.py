"""Prompts left out of the pooling, by the text's own states and a plain mean over them."""

import pytest
import torch
from sentence_transformers import SentenceTransformer

from emo.config_models import StudentSettings, TeacherSettings
from emo.embedding import embed, load_model
from emo.encoder import load_encoder, pad
from emo.models import prepare_model
from emo.prompt_pooling import prompt_length

from ..tiny_decoders import write_folder

CPU = torch.device("cpu")
TEXTS = ["cat", "the old man in the red house", "\u732b the", " dog", ""]


def prepared(tmp_path, name="mistral", kind=TeacherSettings, **keys):
    source = write_folder(name, tmp_path / "source")
    keys = {"source": {"path": "x"}, "max_length": 32, "include_prompt": False} | keys
    prepare_model(kind(**keys), source, tmp_path / "out")
    return tmp_path / "out"


def plain_vectors(folder, texts, first):
    """Pool one text at a time, from its own token ``first`` on."""
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    vectors = []
    for text in texts:
        prompt = model.prompts[model.default_prompt_name]
        tokens = model.tokenizer(prompt + text, return_tensors="pt")
        with torch.no_grad():
            states = model[0].auto_model(**tokens).last_hidden_state[0]
        vectors.append(torch.nn.functional.normalize(states[first:].mean(0), dim=0))
    return torch.stack(vectors)


@pytest.mark.parametrize(
    ("name", "prompt", "first"),
    [
        # <s>, Find, a space and a colon, the; the space at the end joins the text
        ("mistral", "Find : the ", 5),
        ("mistral", "query", 2),
        ("bert", "query: ", 3),
        ("qwen3", "ab:", 3),
    ],
)
def test_the_text_s_own_tokens_are_pooled(tmp_path, name, prompt, first):
    folder = prepared(tmp_path, name, prompt=prompt)
    encoder = load_encoder(folder, device=CPU).eval()
    assert prompt_length(encoder.tokenizer()) == first
    texts = TEXTS[:2]
    with torch.no_grad():
        vectors = encoder(*pad(encoder.tokenizer()(texts), encoder.pad_id)).vectors
    expected = plain_vectors(folder, texts, first)
    torch.testing.assert_close(vectors, expected, atol=1e-5, rtol=0)
    ours = torch.from_numpy(embed(load_model(folder), texts))
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=0)


def test_a_space_behind_the_prompt_does_not_cost_the_first_token(tmp_path):
    """sentence-transformers alone counts one token too many, which this test would notice."""
    folder = prepared(tmp_path, prompt="Find ")
    alone = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    expected = plain_vectors(folder, ["cat in the red house"], 2)
    theirs = torch.from_numpy(alone.encode(["cat in the red house"]))
    ours = torch.from_numpy(embed(load_model(folder), ["cat in the red house"]))
    torch.testing.assert_close(ours, expected, atol=1e-5, rtol=0)
    assert (theirs - expected).abs().max() > 1e-3


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_and_batches_change_nothing(tmp_path, side):
    """Pitfall 69."""
    model = load_model(prepared(tmp_path, prompt="query :"))
    model.tokenizer.padding_side = side
    together = torch.from_numpy(embed(model, TEXTS))
    for row, text in enumerate(TEXTS):
        alone = torch.from_numpy(embed(model, [text]))[0]
        torch.testing.assert_close(together[row], alone, atol=1e-5, rtol=0)
    assert together.isfinite().all()


def test_the_prompt_still_moves_the_text_s_states(tmp_path):
    one = prepared(tmp_path / "a", prompt="query :")
    other = prepared(tmp_path / "b", prompt="Find :")
    vectors = [torch.from_numpy(embed(load_model(folder), ["cat"])) for folder in (one, other)]
    assert (vectors[0] - vectors[1]).abs().max() > 1e-3


def test_gradients_reach_the_prompt_through_attention_only(tmp_path):
    encoder = load_encoder(prepared(tmp_path, prompt="query :"), device=CPU)
    input_ids, mask = pad(encoder.tokenizer()(TEXTS[:2]), encoder.pad_id)
    encoding = encoder(input_ids, mask)
    encoding.states.retain_grad()
    encoding.pooled.sum().backward()
    first = prompt_length(encoder.tokenizer())
    assert encoding.states.grad[:, :first].eq(0).all()
    assert encoding.states.grad[0, first].ne(0).all()


def test_a_student_saves_as_an_ordinary_folder(tmp_path):
    """What its users get without us is what it was trained to."""
    folder = prepared(tmp_path, "bert", StudentSettings, prompt="query:")
    encoder = load_encoder(folder, device=CPU).eval()
    encoder.add_head(torch.nn.Linear(32, 7))
    encoder.model.save(str(tmp_path / "saved"))
    theirs = SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(TEXTS[:2])
    with torch.no_grad():
        ours = encoder(*pad(encoder.tokenizer()(TEXTS[:2]), encoder.pad_id)).vectors
    torch.testing.assert_close(torch.from_numpy(theirs), ours, atol=1e-5, rtol=0)
