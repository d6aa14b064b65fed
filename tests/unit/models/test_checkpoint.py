import json
import logging

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertForMaskedLM, BertModel
from transformers.utils import logging as transformers_logging

from emo.errors import ConfigError, DataError
from emo.models.checkpoint import load_checkpoint, quiet_transformers


@pytest.fixture
def edit_weights(bert_folder):
    def edit(change):
        path = bert_folder / "model.safetensors"
        weights = load_file(path)
        change(weights)
        save_file(weights, path, metadata={"format": "pt"})
        return bert_folder

    return edit


def edit_config(folder, **keys):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))
    return folder


def test_weights_come_back_as_float32(bert, bert_folder):
    bert.half().save_pretrained(bert_folder)
    model, tokenizer = load_checkpoint(bert_folder)
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    assert tokenizer("a man")["input_ids"] == [2, 5, 6, 3]
    expected = bert.state_dict()["encoder.layer.3.output.dense.weight"].float()
    assert torch.equal(model.state_dict()["encoder.layer.3.output.dense.weight"], expected)


def test_poolers_and_heads_are_left_behind_in_silence(bert, bert_folder, capfd, caplog):
    BertForMaskedLM(bert.config).save_pretrained(bert_folder)
    with caplog.at_level(logging.INFO):
        load_checkpoint(bert_folder)
        BertModel(bert.config).save_pretrained(bert_folder)
        model, _ = load_checkpoint(bert_folder)
    assert model.pooler is None
    captured = capfd.readouterr()
    assert "UNEXPECTED" not in captured.err + caplog.text
    assert "Loading weights" not in captured.err


def test_missing_weights_are_named(edit_weights):
    folder = edit_weights(lambda weights: weights.pop("encoder.layer.1.output.dense.bias"))
    with pytest.raises(
        DataError, match=r"1 weights are missing: encoder\.layer\.1\.output\.dense\.bias"
    ):
        load_checkpoint(folder)


def test_weights_without_a_place_are_named(bert_folder):
    edit_config(bert_folder, num_hidden_layers=3)
    with pytest.raises(
        DataError, match=r"16 weights have no place in the model: encoder\.layer\.3"
    ):
        load_checkpoint(bert_folder)


def test_an_edited_width_is_refused_and_nothing_is_initialised_anew(bert_folder):
    edit_config(bert_folder, intermediate_size=20)
    with pytest.raises(DataError, match=r"12 weights have another shape than the config says: enc"):
        load_checkpoint(bert_folder)


def test_tokenizer_and_model_must_belong_together(bert_folder, bert):
    small = type(bert.config)(**{**bert.config.to_dict(), "vocab_size": 9})
    BertModel(small, add_pooling_layer=False).save_pretrained(bert_folder)
    with pytest.raises(DataError, match="tokenizer has 11 tokens, the model vectors for 9"):
        load_checkpoint(bert_folder)


def test_unknown_architectures_and_folders_are_refused(bert_folder, tmp_path):
    with pytest.raises(DataError, match=f"{tmp_path.name} has no config.json"):
        load_checkpoint(tmp_path)
    edit_config(bert_folder, model_type="remote", auto_map={"AutoConfig": "remote.Config"})
    with pytest.raises(ConfigError, match="knows no such architecture"):
        load_checkpoint(bert_folder)


def test_a_folder_without_weights_or_tokenizer_is_named(bert_folder):
    (bert_folder / "tokenizer.json").unlink()
    with pytest.raises(DataError, match="cannot load the tokenizer"):
        load_checkpoint(bert_folder)
    (bert_folder / "model.safetensors").unlink()
    with pytest.raises(DataError, match="cannot load the weights"):
        load_checkpoint(bert_folder)


def test_silence_ends_with_the_block():
    before = transformers_logging.get_verbosity()
    with quiet_transformers():
        assert transformers_logging.get_verbosity() == logging.ERROR
    assert transformers_logging.get_verbosity() == before
    assert transformers_logging.is_progress_bar_enabled()


def test_pickled_weights_are_read_where_there_are_no_others(bert, bert_folder):
    """Some models, BGE-M3 among them, were published as a pickle only."""
    (bert_folder / "model.safetensors").unlink()
    torch.save(bert.half().state_dict(), bert_folder / "pytorch_model.bin")
    model, _ = load_checkpoint(bert_folder)
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}
    for name, value in bert.state_dict().items():
        assert torch.equal(model.state_dict()[name], value.float())


class Touch:
    """Pickles to a call that leaves a mark when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return open, (str(self.mark), "w")


def test_a_pickle_that_runs_code_is_refused(bert, bert_folder, tmp_path):
    (bert_folder / "model.safetensors").unlink()
    evil = bert.state_dict() | {"encoder.evil": Touch(tmp_path / "ran")}
    torch.save(evil, bert_folder / "pytorch_model.bin")
    with pytest.raises(DataError, match="cannot load the weights"):
        load_checkpoint(bert_folder)
    assert not (tmp_path / "ran").exists()


def test_safetensors_are_preferred_to_a_pickle(bert, bert_folder):
    (bert_folder / "pytorch_model.bin").write_bytes(b"never read")
    load_checkpoint(bert_folder)


def test_an_adapter_is_no_source(bert_folder):
    (bert_folder / "adapter_config.json").write_text("{}")
    with pytest.raises(ConfigError, match="holds an adapter; name its base model as `source`"):
        load_checkpoint(bert_folder)
