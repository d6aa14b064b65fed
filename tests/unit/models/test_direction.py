"""Decoders that read both ways: probed, captured against eager attention, alone and in batches."""

import pytest
import torch
from transformers import AutoModel

from emo.attention import Capture
from emo.config_models import TeacherSettings
from emo.encoder import load_encoder, pad
from emo.errors import ConfigError
from emo.models import direction, prepare_model
from emo.models.direction import make_bidirectional, sees_ahead

from ...tiny_architectures import transformer
from ...tiny_decoders import TEXTS, write_folder

CPU = torch.device("cpu")


def prepared(name, tmp_path, **keys):
    folder = write_folder(name, tmp_path / "source")
    keys = {"source": {"path": "x"}, "max_length": 24} | keys
    prepare_model(TeacherSettings(**keys), folder, tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture(params=["mistral", "llama", "qwen3"])
def both_ways(request, tmp_path):
    return prepared(request.param, tmp_path, bidirectional=True)


@pytest.mark.parametrize("name", ["mistral", "llama", "qwen3", "gpt2"])
@pytest.mark.parametrize("implementation", [None, "eager"])
def test_decoders_see_ahead_only_when_asked(name, implementation):
    model = transformer(name, implementation)
    assert not sees_ahead(model)
    make_bidirectional(model)
    assert sees_ahead(model)


def test_it_survives_the_folder_under_every_loader(both_ways):
    """Pitfalls 58 and 59."""
    encoder = load_encoder(both_ways, device=CPU)
    assert sees_ahead(encoder.transformer)
    assert sees_ahead(AutoModel.from_pretrained(both_ways))
    assert sees_ahead(load_encoder(both_ways, "bfloat16", CPU).transformer)


def test_a_decoder_stays_causal_unasked(tmp_path):
    assert not sees_ahead(load_encoder(prepared("mistral", tmp_path), device=CPU).transformer)


def test_captured_attention_is_that_of_the_eager_model(both_ways):
    """One text without padding, where the mask may be left out, and a batch of mixed lengths."""
    encoder = load_encoder(both_ways, device=CPU).eval()
    eager = AutoModel.from_pretrained(both_ways, attn_implementation="eager").eval()
    for texts in (TEXTS[2:3], TEXTS):
        input_ids, mask = pad(encoder.tokenizer()(texts), encoder.pad_id)
        every = torch.arange(mask.shape[1]).expand(mask.shape)
        with torch.no_grad():
            encoding = encoder(input_ids, mask, Capture([0, 2], every, mask[None]))
            output = eager(input_ids, attention_mask=mask.long(), output_attentions=True)
        for place, layer in enumerate((0, 2)):
            expected = output.attentions[layer].mean(1)
            torch.testing.assert_close(
                encoding.rows[place][mask], expected[mask], atol=1e-5, rtol=0
            )
        assert (encoding.rows[0].triu(1)[mask].sum(-1) > 0.01).any(), "nothing ahead is seen"
        torch.testing.assert_close(
            encoding.states[mask], output.last_hidden_state[mask], atol=1e-4, rtol=1e-4
        )


def test_a_text_alone_is_as_in_a_batch(both_ways):
    """Pitfall 57: without padding there is no mask, and sdpa may turn causal."""
    encoder = load_encoder(both_ways, device=CPU).eval()
    tokens = encoder.tokenizer()(TEXTS)
    with torch.no_grad():
        together = encoder(*pad(tokens, encoder.pad_id)).vectors
        for row, text in enumerate(tokens):
            alone = encoder(*pad([text], encoder.pad_id)).vectors[0]
            torch.testing.assert_close(together[row], alone, atol=1e-5, rtol=0)


def test_encoders_are_refused():
    with pytest.raises(ConfigError, match="XLMRobertaModel reads in both directions already"):
        make_bidirectional(transformer("xlm-roberta", None))


def test_an_architecture_that_ignores_the_mark_is_refused(monkeypatch):
    monkeypatch.setattr(direction, "sees_ahead", lambda model: False)
    with pytest.raises(ConfigError, match="LlamaModel does not follow `is_causal: false`"):
        make_bidirectional(transformer("llama", None))
