"""Stored signals against a plain loop over single texts with transformers alone."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from emo.outputs import read_json
from emo.store import Store
from emo.teach import teach
from emo.texts import text_key

from ..plain_models import PlainModel, received_attention
from ..tiny_models import TEACHER_PROMPT, write_texts


@pytest.fixture(scope="module")
def store(tiny):
    return Store(tiny.store)


@pytest.fixture(scope="module")
def plain(tiny):
    """Each text read alone by the teacher."""
    model = PlainModel(tiny.teacher, TEACHER_PROMPT)
    return {text: model(text) for text in tiny.texts_read}


def of_text(store, name, text):
    offsets = store["offsets"]
    row = store.rows([text_key(text)])[0]
    return store[name][offsets[row] : offsets[row + 1]]


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
    np.testing.assert_allclose(store["vectors"][rows], expected, atol=1e-5)


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
    np.testing.assert_allclose(store["vector_centre"], store["vectors"].mean(axis=0), atol=1e-6)
    tokens = store["states"][~store["special"]]
    np.testing.assert_allclose(store["state_centre"], tokens.mean(axis=0), atol=1e-5)


def test_the_order_of_the_texts_changes_nothing(tiny, store, tmp_path):
    """Rows are addressed by text, so a shuffled or thinned set must give the same signals."""
    texts = list(tiny.texts_read)[::-2]
    teach(tiny.teacher, write_texts(texts, tmp_path / "texts.parquet"), tmp_path / "store")
    other = Store(tmp_path / "store")
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
    for name in ("vectors", "states", "importance", "importance_all"):
        assert np.isfinite(store[name]).all(), name


def test_half_precision_is_stored_in_full(tiny, store, tmp_path):
    """Signals of a bfloat16 pass are close, and float32 for every reader."""
    teach(tiny.teacher, tiny.texts, tmp_path / "half", dtype="bfloat16")
    half = Store(tmp_path / "half")
    assert half["vectors"].dtype == half["states"].dtype == half["importance"].dtype == np.float32
    cosine = (half["vectors"] * store["vectors"]).sum(axis=1)
    assert cosine.min() > 0.99
