"""Adapters made by peft itself, and what is merged against a product written out by hand."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoModelForCausalLM

from emo.config_models import TeacherSettings
from emo.errors import CheckError, ConfigError, DataError
from emo.models import adapters as module
from emo.models import prepare_model
from emo.models.adapters import merge_adapters
from emo.models.direction import probe_ids, probe_states

from ...tiny_decoders import write_adapter, write_folder

IDS = torch.tensor([[1, 5, 6, 7, 9, 4]])
SCALE = 4 / 2


def load(folder):
    return AutoModel.from_pretrained(folder, dtype=torch.float32).eval()


def states(model):
    with torch.no_grad():
        return model(IDS).last_hidden_state


def merged_by_hand(folder, adapter_folders):
    """Add scale * B @ A to the weights that the adapter files name."""
    model = load(folder)
    weights = model.state_dict()
    for adapter in adapter_folders:
        stored = load_file(adapter / "adapter_model.safetensors")
        for name in stored:
            if "lora_A" in name:
                target = name.removeprefix("base_model.model.").replace(".lora_A", "")
                change = stored[name.replace("lora_A", "lora_B")] @ stored[name]
                weights[target] = weights[target] + SCALE * change
    model.load_state_dict(weights)
    return model


@pytest.fixture
def base(tmp_path):
    return write_folder("mistral", tmp_path / "base")


@pytest.fixture
def two(base, tmp_path):
    """The second is trained on the model with the first merged, as LLM2Vec's is."""
    first = write_adapter(load(base), tmp_path / "mntp", 1)
    second = write_adapter(merged_by_hand(base, [first]), tmp_path / "supervised", 2)
    return [first, second]


def edit(folder, change):
    path = folder / "adapter_model.safetensors"
    weights = load_file(path)
    save_file(change(weights), path, metadata={"format": "pt"})
    return folder


def test_two_adapters_are_added_in_turn(base, two):
    merged, _ = merge_adapters(load(base), two)
    expected = merged_by_hand(base, two)
    torch.testing.assert_close(states(merged), states(expected), atol=1e-4, rtol=1e-4)
    one, _ = merge_adapters(load(base), two[:1])
    assert (states(one) - states(merged)).abs().max() > 0.1
    assert (states(load(base)) - states(one)).abs().max() > 0.1


def test_adapters_that_rescale_are_merged_in_the_order_given(base, tmp_path):
    plain = write_adapter(load(base), tmp_path / "plain", 1)
    scaled = write_adapter(load(base), tmp_path / "scaled", 2, use_dora=True)
    by_hand = merged_by_hand(base, [plain])
    expected, _ = merge_adapters(by_hand, [scaled])
    actual, _ = merge_adapters(load(base), [plain, scaled])
    torch.testing.assert_close(states(actual), states(expected), atol=1e-4, rtol=1e-4)
    backwards, _ = merge_adapters(load(base), [scaled, plain])
    assert (states(actual) - states(backwards)).abs().max() > 1e-2


def test_nothing_of_peft_is_left(base, two):
    merged, _ = merge_adapters(load(base), two)
    assert type(merged) is type(load(base))
    assert sorted(merged.state_dict()) == sorted(load(base).state_dict())
    assert not [name for name in vars(merged) if "peft" in name]


def test_a_prepared_folder_holds_the_merged_weights_in_float32(base, two, tmp_path):
    """Pitfalls 61 and 62: merged once, saved, and the same when loaded again."""
    source = {"path": "x"}
    settings = TeacherSettings(source=source, adapters=[source, source], max_length=16)
    prepare_model(settings, base, tmp_path / "out", two)
    expected = merged_by_hand(base, two)
    weights = load_file(tmp_path / "out" / "model.safetensors")
    assert {value.dtype for value in weights.values()} == {torch.float32}
    for name, value in expected.state_dict().items():
        torch.testing.assert_close(weights[name], value, atol=1e-6, rtol=1e-5)
    assert not list((tmp_path / "out").glob("adapter*"))
    told = json.loads((tmp_path / "out" / "model.json").read_text())["adapters"]
    one, _ = merge_adapters(load(base), two[:1])
    for adapter, folder, before, after in zip(
        told, two, (load(base), one), (one, expected), strict=True
    ):
        ids = probe_ids(before)
        change = (probe_states(after, ids) - probe_states(before, ids)).abs().max()
        assert adapter["weights"] == len(load_file(folder / "adapter_model.safetensors"))
        assert adapter["change"] == pytest.approx(float(change), abs=1e-4)
        assert 0.9999 <= adapter["least_cosine"] <= 1.0001


def test_half_precision_bases_are_merged_in_float32(base, two, tmp_path):
    load(base).half().save_pretrained(base)
    settings = TeacherSettings(source={"path": "x"}, adapters=[{"path": "y"}], max_length=16)
    prepare_model(settings, base, tmp_path / "out", two[:1])
    expected = merged_by_hand(base, two[:1])
    weights = load_file(tmp_path / "out" / "model.safetensors")
    name = "layers.0.self_attn.q_proj.weight"
    torch.testing.assert_close(weights[name], expected.state_dict()[name], atol=1e-6, rtol=1e-5)


def test_missing_and_surplus_weights_are_named(base, two):
    lost = "base_model.model.layers.1.mlp.up_proj.lora_B.weight"
    edit(two[0], lambda weights: {k: v for k, v in weights.items() if k != lost})
    with pytest.raises(DataError, match=r"1 are missing: layers\.1\.mlp\.up_proj\.lora_B\.weight;"):
        merge_adapters(load(base), two)
    edit(two[1], lambda weights: weights | {"base_model.model.more.weight": torch.ones(1)})
    with pytest.raises(DataError, match=r"0 are missing: none; 1 have no place: more\.weight"):
        merge_adapters(load(base), two[1:])


def test_an_adapter_of_another_layout_is_refused(base, tmp_path):
    """Pitfall 63: keys not found are but a warning of peft, and the base would be used."""
    causal = AutoModelForCausalLM.from_config(load(base).config)
    adapter = write_adapter(causal, tmp_path / "causal", 1)
    with pytest.raises(DataError, match=r"missing: layers\.0.*no place: model\.layers\.0.*head"):
        merge_adapters(load(base), [adapter])


def test_an_untrained_adapter_is_refused(base, two):
    zeros = edit(two[0], lambda ws: {k: v * ("lora_A" in k) for k, v in ws.items()})
    with pytest.raises(DataError, match="the adapter changes nothing"):
        merge_adapters(load(base), [zeros])


def test_adapters_of_other_sizes_or_kinds_are_refused(base, two, tmp_path):
    path = two[0] / "adapter_config.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {"r": 3}))
    with pytest.raises(DataError, match="does not fit the model: .*size mismatch"):
        merge_adapters(load(base), two[:1])
    kind = {"peft_type": "IA3", "target_modules": ["q_proj"], "feedforward_modules": []}
    path.write_text(json.dumps(kind))
    with pytest.raises(ConfigError, match="of the type .*IA3.*, not LoRA"):
        merge_adapters(load(base), two[:1])
    path.unlink()
    with pytest.raises(DataError, match="has no adapter_config.json"):
        merge_adapters(load(base), two[:1])


def test_damaged_weights_are_named(base, two):
    (two[0] / "adapter_model.safetensors").write_bytes(b"x" * 100)
    with pytest.raises(DataError, match=r"adapter_model.safetensors is damaged"):
        merge_adapters(load(base), two[:1])


def test_a_merge_that_is_none_is_noticed(base, two, monkeypatch):
    monkeypatch.setattr(
        module.PeftModel, "merge_and_unload", lambda self, **_: self.unload(), raising=False
    )
    with pytest.raises(CheckError, match=r"merged have cosine -?0\.\d+ to those with it applied"):
        merge_adapters(load(base), two[:1])


def test_as_many_folders_as_settings(base, two, tmp_path):
    settings = TeacherSettings(source={"path": "x"}, max_length=16)
    with pytest.raises(ValueError, match="0 adapters in the settings, 2 here"):
        prepare_model(settings, base, tmp_path / "out", two)
