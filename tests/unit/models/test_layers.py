import pytest
import torch
from transformers import (
    AlbertConfig,
    AlbertModel,
    DistilBertConfig,
    DistilBertModel,
    ModernBertConfig,
    ModernBertModel,
    Qwen3Config,
    Qwen3Model,
)

from emo.errors import ConfigError
from emo.models.layers import constructor_options, draw_layers, keep_layers

IDS = torch.tensor([[2, 5, 6, 7, 3]])


def qwen3():
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=11,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=4,
        use_sliding_window=True,
        sliding_window=4,
        max_window_layers=2,
    )
    return Qwen3Model(config).eval()


def distilbert():
    torch.manual_seed(0)
    config = DistilBertConfig(vocab_size=11, dim=8, n_layers=4, n_heads=2, hidden_dim=16)
    return DistilBertModel(config).eval()


def test_kept_layers_compute_what_they_did(bert):
    """The small model equals the large one with the other layers taken out by hand."""
    small = keep_layers(bert, [0, 3, 2])
    chosen = [bert.encoder.layer[i] for i in (0, 3, 2)]
    bert.encoder.layer = torch.nn.ModuleList(chosen)
    with torch.no_grad():
        expected, actual = bert(IDS).last_hidden_state, small(IDS).last_hidden_state
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("build", [qwen3, distilbert])
def test_other_architectures_agree_after_a_reload(build, tmp_path):
    large = build()
    small = keep_layers(large, [0, 2])
    small.save_pretrained(tmp_path)
    again = type(large).from_pretrained(tmp_path).eval()
    assert again.config.num_hidden_layers == 2
    with torch.no_grad():
        assert torch.equal(again(IDS).last_hidden_state, small(IDS).last_hidden_state)


def test_layer_kinds_follow_their_layers():
    large = qwen3()
    assert large.config.layer_types == ["full_attention"] * 2 + ["sliding_attention"] * 2
    small = keep_layers(large, [1, 3])
    assert small.config.layer_types == ["full_attention", "sliding_attention"]
    assert torch.equal(small.layers[1].mlp.up_proj.weight, large.layers[3].mlp.up_proj.weight)
    assert small.layers[1].self_attn.layer_idx == 1


def test_the_source_is_left_alone(bert):
    small = keep_layers(bert, [1])
    assert bert.config.num_hidden_layers == len(bert.encoder.layer) == 4
    with torch.no_grad():
        small.encoder.layer[0].output.dense.weight.zero_()
    assert bert.encoder.layer[1].output.dense.weight.abs().sum() > 0


def test_a_layer_out_of_range_is_named(bert):
    with pytest.raises(ConfigError, match="layers: 4 is out of range, BertModel .* 0 to 3"):
        keep_layers(bert, [0, 4])


def test_shared_layers_cannot_be_chosen():
    config = AlbertConfig(
        vocab_size=11, embedding_size=4, hidden_size=8, num_attention_heads=2, intermediate_size=16
    )
    with pytest.raises(ConfigError, match="AlbertModel has no stack of layers"):
        keep_layers(AlbertModel(config), [0])


def test_layers_of_different_make_are_refused():
    """The first layer of ModernBERT lacks a norm that the others have."""
    config = ModernBertConfig(
        vocab_size=11,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        cls_token_id=2,
        sep_token_id=3,
    )
    with pytest.raises(ConfigError, match="layers of ModernBertModel are not interchangeable"):
        keep_layers(ModernBertModel(config), [1, 2])


def test_only_architectures_with_a_pooler_are_told_to_leave_it_out(bert):
    assert constructor_options(type(bert)) == {"add_pooling_layer": False}
    assert constructor_options(DistilBertModel) == {}


def weights(model, inside):
    return {k: v for k, v in model.state_dict().items() if ("layer." in k) == inside}


def test_drawn_layers_are_new_and_word_vectors_stay(bert):
    before = {key: value.clone() for key, value in bert.state_dict().items()}
    drawn = draw_layers(bert, seed=3)
    for key, value in weights(bert, inside=False).items():
        assert torch.equal(drawn.state_dict()[key], value), key
    matrices = {k: v for k, v in weights(drawn, inside=True).items() if v.ndim == 2}
    assert matrices
    for key, value in matrices.items():
        assert not torch.equal(value, before[key]), key
        assert value.std().item() == pytest.approx(bert.config.initializer_range, rel=0.3), key
    assert all(torch.equal(value, bert.state_dict()[key]) for key, value in before.items())


def test_the_seed_alone_decides_what_is_drawn(bert):
    torch.manual_seed(1)
    first, state = draw_layers(bert, seed=3), torch.get_rng_state()
    torch.manual_seed(1)
    assert torch.equal(torch.get_rng_state(), state), "the draws of others go on as they were"
    torch.manual_seed(2)
    again, other = draw_layers(bert, seed=3).state_dict(), draw_layers(bert, seed=4).state_dict()
    assert all(torch.equal(value, again[key]) for key, value in first.state_dict().items())
    key = next(key for key, value in weights(bert, inside=True).items() if value.ndim == 2)
    assert not torch.equal(again[key], other[key])


def test_layers_that_cannot_be_found_are_not_drawn():
    albert = AlbertModel(AlbertConfig(vocab_size=11, embedding_size=4, hidden_size=8,
        num_hidden_layers=2, num_attention_heads=2, intermediate_size=16))  # fmt: skip
    with pytest.raises(ConfigError, match="draw_layers: AlbertModel has no stack"):
        draw_layers(albert, seed=3)
