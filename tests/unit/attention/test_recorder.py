"""Passes do not mix, and a model that cannot be heard is refused."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from transformers import (
    DebertaV2Config,
    DebertaV2Model,
    FalconConfig,
    FalconModel,
    T5Config,
    T5EncoderModel,
)

from emo.attention import Capture
from emo.attention.interface import attend
from emo.attention.recorder import Recorder, active_recorder, recording
from emo.errors import ConfigError

from ...tiny_architectures import (
    CONFIGS,
    encoder_of,
    fused_and_eager,
    random_batch,
    transformer,
)


def ask(mask):
    return Capture([0, 2], torch.zeros(len(mask), 2, dtype=torch.int64), mask[None])


def test_passes_in_threads_do_not_mix():
    encoders = [fused_and_eager(name, seed)[0] for name in ("bert", "llama") for seed in (0, 1)]
    batches = [random_batch((20, 7), seed=seed) for seed in range(4)]

    def read(place):
        with torch.no_grad():
            input_ids, mask = batches[place % 4]
            return encoders[place // 4](input_ids, mask, ask(mask))

    alone = [read(place) for place in range(16)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(read, [*range(16)] * 3))
    for place, encoding in enumerate(together):
        torch.testing.assert_close(encoding.rows, alone[place % 16].rows)
        torch.testing.assert_close(encoding.importance, alone[place % 16].importance)


@pytest.mark.parametrize("inner_asks", [True, False])
def test_a_pass_inside_a_pass_does_not_mix(inner_asks):
    outer, inner = (fused_and_eager("bert", seed)[0] for seed in (0, 1))
    batch, other = random_batch((9, 4)), random_batch((6, 6), seed=1)
    found = []

    def run_inner(*_):
        found.append(inner(*other, ask(other[1]) if inner_asks else None))

    with torch.no_grad():
        expected = [outer(*batch, ask(batch[1])), inner(*other, ask(other[1]))]
        outer.transformer.encoder.layer[1].register_forward_hook(run_inner)
        nested = outer(*batch, ask(batch[1]))
    torch.testing.assert_close(nested.rows, expected[0].rows)
    torch.testing.assert_close(nested.importance, expected[0].importance)
    torch.testing.assert_close(found[0].states, expected[1].states)
    if inner_asks:
        torch.testing.assert_close(found[0].rows, expected[1].rows)


def test_nobody_listens_after_a_failed_pass():
    encoder, _ = fused_and_eager("bert")
    _, mask = random_batch((5,))
    with pytest.raises(IndexError):
        encoder(torch.full((1, 5), 10_000), mask, ask(mask))
    assert active_recorder() is None


SMALL = {"vocab_size": 50, "num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 32}
DEAF = {
    "DebertaV2Model": lambda: DebertaV2Model(DebertaV2Config(**SMALL, intermediate_size=48)),
    "FalconModel": lambda: FalconModel(FalconConfig(**SMALL)),
    "BertModel": lambda: transformer("bert", "eager"),
}


@pytest.mark.parametrize("name", DEAF)
def test_a_model_that_cannot_be_heard_is_refused_by_name(name):
    """Pitfalls 49 and 55: never an empty result, never uniform weights."""
    encoder = encoder_of(DEAF[name]())
    batch = random_batch((5, 3))
    assert encoder(*batch).states.isfinite().all(), "only the capture is refused"
    with pytest.raises(
        ConfigError, match=rf"{name} runs `\w+` attention; 0 of 3 layers were heard"
    ):
        encoder(*batch, ask(batch[1]))


def test_position_biases_are_refused_by_name():
    config = T5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=48, num_layers=3, num_heads=4)
    encoder = encoder_of(T5EncoderModel(config).eval())
    batch = random_batch((5, 3))
    with pytest.raises(ConfigError, match="T5Attention changes its attention by position_bias"):
        encoder(*batch, ask(batch[1]))


@pytest.mark.parametrize("name", ["softcap", "s_aux", "sinks", "something_new"])
def test_what_would_change_the_scores_is_refused_by_name(name):
    query = torch.randn(1, 2, 3, 4)
    asked = Recorder(ask(torch.ones(1, 3, dtype=torch.bool)), layers=3)
    with recording(asked), pytest.raises(ConfigError, match=f"Linear changes its .* by {name}"):
        attend(torch.nn.Linear(1, 1), query, query, query, None, **{name: 30.0})


@pytest.mark.parametrize("asked", [None, True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_causality_is_decided_as_transformers_does(asked, masked):
    """A mask holds causality itself; without one the argument counts, then the module."""
    query = torch.randn(1, 2, 3, 4, generator=torch.Generator().manual_seed(0))
    attended = torch.eye(3).expand(1, 2, 3, 3)  # values that show the weights
    module = torch.nn.Linear(1, 1)
    module.is_causal = asked is not True
    every = torch.arange(3)[None]
    recorder = Recorder(Capture([0], every), layers=1)
    mask = torch.ones(1, 1, 3, 3, dtype=torch.bool) if masked else None
    with recording(recorder):
        output, _ = attend(module, query, query, attended, mask, is_causal=asked)
    rows = recorder.rows(torch.ones(1, 3, dtype=torch.bool))[0]
    torch.testing.assert_close(rows, output.mean(dim=2))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_loaded_without_a_word_is_heard(name):
    """Pitfall 49: transformers loads sdpa by default, whose attention comes back empty."""
    encoder = encoder_of(transformer(name, None))
    assert encoder.transformer.config._attn_implementation in ("emo", "eager")
    input_ids, mask = random_batch((5, 3))
    encoding = encoder(input_ids, mask, ask(mask))
    assert encoding.rows.shape == (2, 2, 2, 5)
    assert encoding.rows.std() > 0, "uniform"


def test_a_saved_model_does_not_keep_the_implementation(tmp_path):
    """Its users have no `emo`."""
    encoder, _ = fused_and_eager("bert")
    encoder.transformer.save_pretrained(tmp_path)
    assert "emo" not in (tmp_path / "config.json").read_text()


def test_mpnet_says_once_that_it_has_a_path_of_its_own(caplog):
    with caplog.at_level("INFO", logger="emo"):
        model = transformer("mpnet", None)
        first = encoder_of(model)
    assert [record.message for record in caplog.records] == [
        "MPNetModel runs its own attention; rows are computed beside it"
    ]
    input_ids, mask = random_batch((5, 3))
    again = encoder_of(model)  # a second encoder of the same model must not hear each layer twice
    torch.testing.assert_close(
        again(input_ids, mask, ask(mask)).rows, first(input_ids, mask, ask(mask)).rows
    )


def test_a_model_that_numbers_no_layer_says_how_they_are_told(caplog):
    """DistilBERT gives no layer index, BERT does."""
    with caplog.at_level("INFO", logger="emo"):
        encoder_of(transformer("bert", None))
        assert not caplog.records
        encoder_of(transformer("distilbert", None))
    assert [record.message for record in caplog.records] == [
        "DistilBertModel numbers none of its attention layers; they are told by the order they "
        "run in"
    ]
