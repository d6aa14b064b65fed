"""Each architecture from its publisher's layout to vectors, against transformers alone."""

import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from emo.config_models import TeacherSettings
from emo.encoder import load_encoder, pad
from emo.models import prepare_model

from ...tiny_decoders import TEXTS, write_adapter, write_folder

MODELS = {
    "xlm-roberta": {"pooling": "cls"},
    "bert": {"pooling": "mean", "prompt": "query: "},
    "mpnet": {"pooling": "mean"},
    "mistral": {"pooling": "last", "prompt": "Find the : ", "end_token": "</s>"},
    "qwen3": {"pooling": "last", "end_token": "<|endoftext|>"},
    "llama": {"pooling": "weighted"},
}
POOLS = {
    "cls": lambda states: states[0],
    "mean": lambda states: states.mean(0),
    "last": lambda states: states[-1],
    "weighted": lambda states: (torch.arange(1, len(states) + 1)[:, None] * states).sum(0),
}


@pytest.fixture(scope="module", params=MODELS)
def prepared(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    keys = {"source": {"path": "x"}, "max_length": 40} | MODELS[request.param]
    settings = TeacherSettings(**keys)
    prepare_model(settings, write_folder(request.param, folder / "source"), folder / "out")
    return settings, folder / "out"


def plain_vectors(settings, folder, texts):
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    vectors = []
    for text in texts:
        tokens = tokenizer(settings.prompt + text, return_tensors="pt", truncation=True)
        with torch.no_grad():
            states = model.eval()(**tokens).last_hidden_state[0]
        vectors.append(torch.nn.functional.normalize(POOLS[settings.pooling](states), dim=0))
    return torch.stack(vectors)


def test_vectors_are_those_of_transformers(prepared):
    """On both sides of the padding where positions are relative; others count the padding."""
    settings, folder = prepared
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    relative = model[0].auto_model.config.model_type in ("mistral", "qwen3", "llama")
    expected = plain_vectors(settings, folder, TEXTS)
    for side in ("right", "left") if relative else ("right",):
        model.tokenizer.padding_side = side
        vectors = torch.from_numpy(model.encode(TEXTS))
        torch.testing.assert_close(vectors, expected, atol=1e-5, rtol=0)


def test_our_passes_agree_alone_and_in_a_batch(prepared):
    settings, folder = prepared
    encoder = load_encoder(folder, device=torch.device("cpu")).eval()
    expected = plain_vectors(settings, folder, TEXTS)
    tokens = encoder.tokenizer()(TEXTS)
    with torch.no_grad():
        together = encoder(*pad(tokens, encoder.pad_id)).vectors
        backwards = encoder(*pad(tokens[::-1], encoder.pad_id)).vectors.flip(0)
        alone = torch.cat([encoder(*pad([text], encoder.pad_id)).vectors for text in tokens])
    for vectors in (together, backwards, alone):
        torch.testing.assert_close(vectors, expected, atol=1e-5, rtol=0)


def test_the_whole_of_llm2vec(tmp_path):
    """Base, two adapters, both directions, prompt left out of a mean: saved, loaded, the same."""
    source = write_folder("mistral", tmp_path / "base")
    base = AutoModel.from_pretrained(source, dtype=torch.float32)
    adapters = [write_adapter(base, tmp_path / name, seed) for seed, name in enumerate("ab")]
    keys = {"source": {"path": "x"}, "max_length": 40, "prompt": "Find the : "}
    settings = TeacherSettings(
        **keys, adapters=[{"path": "a"}, {"path": "b"}], bidirectional=True, include_prompt=False
    )
    prepare_model(settings, source, tmp_path / "out", adapters)
    encoder = load_encoder(tmp_path / "out", device=torch.device("cpu")).eval()
    model = AutoModel.from_pretrained(tmp_path / "out", attn_implementation="eager").eval()
    assert model.config.is_causal is False
    for text, vector in zip(TEXTS, _vectors(encoder), strict=True):
        tokens = encoder.tokenizer()([text])[0]
        with torch.no_grad():
            states = model(input_ids=torch.from_numpy(tokens.input_ids)[None]).last_hidden_state[0]
        read = torch.from_numpy(~(tokens.prompt | tokens.special))
        expected = torch.nn.functional.normalize(states[read].mean(0), dim=0)
        torch.testing.assert_close(vector, expected, atol=1e-5, rtol=0)


def _vectors(encoder):
    with torch.no_grad():
        return encoder(*pad(encoder.tokenizer()(TEXTS), encoder.pad_id)).vectors
