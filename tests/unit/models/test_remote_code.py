"""Code that comes with a model: never run unasked, and kept with the prepared folder when asked."""

import json

import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import BertModel

from emo.config_models import TeacherSettings
from emo.embedding import load_model
from emo.encoder import load_encoder
from emo.errors import ConfigError
from emo.models import prepare_model

from ...tiny_decoders import TEXTS, write_folder

CODE = """
from pathlib import Path
from transformers import BertConfig, BertModel

Path("{mark}").touch()

class OwnConfig(BertConfig):
    model_type = "own-model"

class OwnModel(BertModel):
    config_class = OwnConfig

    def __init__(self, config):
        super().__init__(config, add_pooling_layer=False)
"""


@pytest.fixture
def own(tmp_path):
    folder = write_folder("bert", tmp_path / "source")
    (folder / "own.py").write_text(CODE.format(mark=tmp_path / "ran"))
    classes = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    return edited(folder, model_type="own-model", architectures=["OwnModel"], auto_map=classes)


def edited(folder, **keys):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))
    return folder


def settings(**keys):
    source = {"hub": "some/model", "revision": "0" * 40}
    return TeacherSettings(**({"source": source, "max_length": 16} | keys))


def test_it_is_not_run_unasked(own, tmp_path):
    with pytest.raises(ConfigError, match="which is not run unless `remote_code: true` asks"):
        prepare_model(settings(), own, tmp_path / "out")
    assert not (tmp_path / "ran").exists()


def test_it_is_run_when_asked_and_stays_with_the_folder(own, tmp_path):
    prepare_model(settings(remote_code=True), own, tmp_path / "out")
    assert (tmp_path / "ran").exists()
    encoder = load_encoder(tmp_path / "out", device=torch.device("cpu"))
    assert type(encoder.transformer).__name__ == "OwnModel"
    vectors = torch.from_numpy(load_model(tmp_path / "out").encode(TEXTS))
    plain = BertModel.from_pretrained(tmp_path / "source", add_pooling_layer=False).eval()
    tokens = encoder.tokenizer()(["the cat"])[0]
    with torch.no_grad():
        states = plain(torch.from_numpy(tokens.input_ids)[None]).last_hidden_state[0]
    expected = torch.nn.functional.normalize(states.mean(0), dim=0)
    torch.testing.assert_close(vectors[0], expected, atol=1e-5, rtol=0)


def test_a_folder_prepared_without_it_is_not_trusted(own, tmp_path):
    prepare_model(settings(remote_code=True), own, tmp_path / "out")
    record = tmp_path / "out" / "model.json"
    told = json.loads(record.read_text())
    told["settings"]["remote_code"] = False
    record.write_text(json.dumps(told))
    with pytest.raises((OSError, ValueError)):
        load_encoder(tmp_path / "out", device=torch.device("cpu"))


def test_code_of_another_repository_is_refused(own, tmp_path):
    edited(own, auto_map={"AutoModel": "other/repository--own.OwnModel"})
    with pytest.raises(ConfigError, match=r"AutoModel from another repository, other/repository"):
        prepare_model(settings(remote_code=True), own, tmp_path / "out")


def test_vectors_of_a_trusted_folder_are_plain_sentence_transformers(own, tmp_path):
    prepare_model(settings(remote_code=True), own, tmp_path / "out")
    model = SentenceTransformer(str(tmp_path / "out"), trust_remote_code=True, device="cpu")
    ours = load_model(tmp_path / "out").encode(TEXTS)
    torch.testing.assert_close(torch.from_numpy(model.encode(TEXTS)), torch.from_numpy(ours))
