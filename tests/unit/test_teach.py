"""Stored signals against a plain loop over single texts with transformers alone."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import LlamaConfig, LlamaModel

from emo.config_models import TeacherSettings
from emo.encoder import Encoder
from emo.errors import CheckError
from emo.models import prepare_model
from emo.outputs import read_json, write_json
from emo.store import Store
from emo.teach import teach
from emo.texts import text_key

from ..plain_models import PlainModel, received_attention
from ..stores import make_store
from ..tiny_models import TEACHER_PROMPT, teacher_tokenizer, write_texts


@pytest.fixture(scope="module")
def store(tiny):
    return Store(tiny.store)


@pytest.fixture(scope="module")
def plain(tiny):
    """Each text read alone by the teacher."""
    model = PlainModel(tiny.teacher, TEACHER_PROMPT)
    return {text: model(text) for text in tiny.texts_read}


def of_text(store, name, text):
    return store.pieces(name, store.rows([text_key(text)]))[0]


def vectors_of(store, keys):
    return store.stacked("vectors", store.rows(keys))


def test_states_are_those_of_all_tokens_but_the_prompts(store, plain):
    """A prompt token kept would move every position of the alignment."""
    for text, read in plain.items():
        assert len(read.kept) < max(read.kept) + 1, "the prompt has tokens of its own"
        np.testing.assert_allclose(of_text(store, "states", text), read.states, atol=2e-5)
        assert of_text(store, "special", text).tolist() == read.special


def test_vectors_are_the_final_ones(tiny, store):
    """Pitfall 8: what users get, every module included, prompt included."""
    expected = SentenceTransformer(str(tiny.teacher), device="cpu").encode(list(tiny.texts_read))
    rows = store.rows([text_key(text) for text in tiny.texts_read])
    np.testing.assert_allclose(store.stacked("vectors", rows), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "specials_count"), [("importance", False), ("importance_all", True)]
)
def test_importance_is_the_attention_received(store, plain, name, specials_count):
    """Pitfall 53 and the two forms: `importance` counts text tokens only, on both sides."""
    for text, read in plain.items():
        counted = [specials_count or not special for special in read.special]
        expected = received_attention(read.attention[-1], counted)
        np.testing.assert_allclose(of_text(store, name, text), expected, atol=1e-5)


def test_centres_are_means_over_texts_and_over_text_tokens(store):
    rows = range(len(store))
    vectors = store.stacked("vectors", rows)
    np.testing.assert_allclose(store["vector_centre"], vectors.mean(axis=0), atol=1e-6)
    special = np.concatenate(store.pieces("special", rows))
    tokens = np.concatenate(store.pieces("states", rows))[~special]
    np.testing.assert_allclose(store["state_centre"], tokens.mean(axis=0), atol=1e-5)


def test_the_order_of_the_texts_changes_nothing(tiny, store, tmp_path):
    """Rows are addressed by text, so a shuffled or thinned set must give the same signals."""
    texts = list(tiny.texts_read)[::-2]
    path = write_texts(texts, tmp_path / "texts.parquet")
    other = Store(make_store(tiny.teacher, path, tmp_path / "store", shards=3))
    assert len(other) == len(texts)
    for text in texts:
        for name in ("states", "importance", "importance_all", "special"):
            np.testing.assert_allclose(
                of_text(other, name, text), of_text(store, name, text), atol=3e-5
            )


def test_the_identity_says_what_it_was_made_from(tiny, store):
    """Pitfall 19: a key of the text alone would go on serving the vectors of another prompt."""
    assert store.identity["teacher"] == read_json(tiny.teacher / "model.json")
    assert store.identity["teacher"]["settings"]["prompt"] == TEACHER_PROMPT
    assert store.identity["dtype"] == "float32"
    assert store.identity["code"]


def test_every_signal_is_finite(store):
    for shard in store.shards:
        for name in ("vectors", "states", "importance", "importance_all"):
            assert np.isfinite(shard.array(name)).all(), name


def test_half_precision_is_stored_in_full(tiny, store, tmp_path):
    """Signals of a bfloat16 pass are close, and float32 for every reader."""
    half = Store(make_store(tiny.teacher, tiny.texts, tmp_path / "half", dtype="bfloat16"))
    for shard in half.shards:
        for name in ("vectors", "states", "importance"):
            assert shard.array(name).dtype == np.float32
    keys = [text_key(text) for text in tiny.texts_read]
    cosine = (vectors_of(half, keys) * vectors_of(store, keys)).sum(axis=1)
    assert cosine.min() > 0.99


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    """A prepared decoder whose tokenizer pads on the left, as those of large models do."""
    folder = tmp_path_factory.mktemp("decoder")
    tokenizer = teacher_tokenizer()
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.25,
    )
    LlamaModel(config).save_pretrained(folder / "source")
    tokenizer.save_pretrained(folder / "source")
    settings = TeacherSettings(source={"path": "unused"}, prompt=TEACHER_PROMPT, max_length=40)
    prepare_model(settings, folder / "source", folder / "teacher")
    loading = folder / "teacher" / "tokenizer_config.json"
    write_json(loading, read_json(loading) | {"padding_side": "left"})
    return folder / "teacher"


def test_a_decoder_whose_tokenizer_pads_left_is_read_alike(decoder, tiny, tmp_path):
    """Pitfall 54: positions come from masks, whichever side a tokenizer pads."""
    texts = list(tiny.texts_read)
    path = write_texts(texts, tmp_path / "texts.parquet")
    made = Store(make_store(decoder, path, tmp_path / "store"))
    expected = SentenceTransformer(str(decoder), device="cpu").encode(texts)
    rows = made.rows([text_key(text) for text in texts])
    np.testing.assert_allclose(made.stacked("vectors", rows), expected, atol=1e-5)
    plain = PlainModel(decoder, TEACHER_PROMPT)
    assert plain.tokenizer.padding_side == "left"
    for text in texts:
        read = plain(text)
        np.testing.assert_allclose(of_text(made, "states", text), read.states, atol=2e-5)
        for name, specials_count in (("importance", False), ("importance_all", True)):
            counted = [specials_count or not special for special in read.special]
            expected = received_attention(read.attention[-1], counted)
            np.testing.assert_allclose(of_text(made, name, text), expected, atol=1e-5)


def test_a_vector_that_is_not_finite_is_refused(tiny, tmp_path, monkeypatch):
    """Pitfalls 72 and 73: half precision overflows in some batches of some models."""
    forward = Encoder.forward

    def overflow(self, *args):
        encoding = forward(self, *args)
        encoding.vectors[1, 3] = torch.inf
        return encoding

    monkeypatch.setattr(Encoder, "forward", overflow)
    texts = write_texts(["a cat sleeps in the garden", "cat", "dog"], tmp_path / "texts.parquet")
    with pytest.raises(CheckError, match=r"vector of the text 'cat' is not finite; set the"):
        teach(tiny.teacher, texts, tmp_path / "store" / "1-of-1")
    assert list((tmp_path / "store").iterdir()) == []
