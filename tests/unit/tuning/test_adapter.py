"""What an adapter lets be trained, on tiny teachers of several architectures."""

import pytest
import torch

from emo.config_models import TeacherSettings
from emo.encoder import load_encoder, pad
from emo.errors import ConfigError, DataError
from emo.models import prepare_model
from emo.tuning.adapter import add_adapter, merge_adapter

from ...tiny_decoders import TEXTS, write_folder
from .conftest import settings

MAKES = {
    "mpnet": {},
    "mistral": {"bidirectional": True, "prompt": "Find the : ", "include_prompt": False},
    "qwen3": {"pooling": "last", "end_token": "<|endoftext|>"},
}


@pytest.fixture(scope="module", params=MAKES)
def prepared(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    source = write_folder(request.param, folder / "source")
    teacher = TeacherSettings(source={"path": "x"}, max_length=40, **MAKES[request.param])
    prepare_model(teacher, source, folder / "out")
    return folder / "out"


@pytest.fixture
def encoder(prepared):
    return load_encoder(prepared, device=torch.device("cpu"))


def say(encoder):
    with torch.no_grad():
        return encoder(*pad(encoder.tokenizer()(TEXTS), encoder.pad_id)).vectors


def train_a_little(encoder):
    """Some steps that move every weight that may be moved."""
    torch.manual_seed(0)
    weights = [weight for weight in encoder.parameters() if weight.requires_grad]
    optimizer = torch.optim.SGD(weights, lr=1.0)
    direction = torch.randn(encoder.width)
    for _ in range(3):
        optimizer.zero_grad()
        encoder(*pad(encoder.tokenizer()(TEXTS), encoder.pad_id)).vectors.matmul(
            direction
        ).sum().backward()
        optimizer.step()


def test_a_gradient_reaches_the_adapter_alone(encoder):
    before = {name: weight.clone() for name, weight in encoder.named_parameters()}
    add_adapter(encoder.train(), settings(dropout=0.0))
    train_a_little(encoder)
    after = dict(encoder.named_parameters())
    trained = {name for name, weight in after.items() if weight.grad is not None}
    assert trained == {name for name in after if "lora_" in name}
    assert all(after[name].grad.abs().sum() > 0 for name in trained if "lora_B" in name)
    frozen = {name.replace(".base_layer", ""): after[name] for name in after.keys() - trained}
    assert frozen.keys() == before.keys()
    assert all(torch.equal(frozen[name], before[name]) for name in before)


def test_a_projection_behind_the_pooling_is_frozen_too(tiny_models):
    """The adapter is all that is merged, and all that the record tells of."""
    encoder = load_encoder(tiny_models.teacher, device=torch.device("cpu"))
    encoder.add_head(torch.nn.Linear(48, 8))
    add_adapter(encoder, settings())
    trained = [name for name, weight in encoder.named_parameters() if weight.requires_grad]
    assert trained
    assert all("lora_" in name for name in trained)


def test_a_new_adapter_changes_nothing(encoder):
    before = say(encoder.eval())
    add_adapter(encoder, settings())
    torch.testing.assert_close(say(encoder.eval()), before, atol=0, rtol=0)


def test_the_merged_teacher_says_what_the_adapted_one_said(encoder, prepared, tmp_path):
    names = load_encoder(prepared, device=torch.device("cpu")).state_dict().keys()
    adapted = add_adapter(encoder, settings(dropout=0.0))
    before = say(encoder.eval())
    train_a_little(encoder)
    applied = say(encoder.eval())
    assert (applied - before).abs().max() > 1e-3
    merged = merge_adapter(encoder, adapted, tmp_path / "adapter")
    torch.testing.assert_close(say(encoder.eval()), applied, atol=1e-5, rtol=1e-4)
    assert encoder.state_dict().keys() == names, "nothing of peft is left"
    assert merged.change > 0
    assert merged.least_cosine > 0.9999


def test_an_adapter_that_was_not_trained_is_refused(encoder, tmp_path):
    adapted = add_adapter(encoder, settings())
    with pytest.raises(DataError, match="the adapter changes nothing"):
        merge_adapter(encoder, adapted, tmp_path / "adapter")


def test_rank_alpha_and_places_are_those_asked_for(tiny_models):
    encoder = load_encoder(tiny_models.teacher, device=torch.device("cpu"))
    adapted = add_adapter(encoder, settings(rank=2, alpha=6, dropout=0.3, targets=["query"]))
    places = {
        name.partition(".lora_A")[0].rpartition(".")[2]
        for name, _ in encoder.named_parameters()
        if "lora_A" in name
    }
    assert places == {"query"}
    layer = encoder.transformer.encoder.layer[0].attention.self.query
    assert layer.lora_A["default"].weight.shape == (2, 48)
    assert layer.scaling["default"] == 3.0
    assert layer.lora_dropout["default"].p == 0.3
    assert adapted.peft_config["default"].r == 2


@pytest.mark.parametrize("others", [[], ["query", "self.value"]])
def test_places_that_are_not_there_are_named(tiny_models, others):
    encoder = load_encoder(tiny_models.teacher, device=torch.device("cpu"))
    with pytest.raises(ConfigError, match=r"tuning\.targets: BertModel cannot .* layer q_proj;"):
        add_adapter(encoder, settings(targets=[*others, "q_proj"]))


def test_places_that_take_no_adapter_are_named(tiny_models):
    encoder = load_encoder(tiny_models.teacher, device=torch.device("cpu"))
    with pytest.raises(ConfigError, match=r"tuning\.targets: BertModel cannot .*LayerNorm"):
        add_adapter(encoder, settings(targets=["LayerNorm"]))
