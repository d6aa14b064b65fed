"""SentenceTransformer folders: prepared ones must say what sentence-transformers itself says."""

import json

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Dropout,
    Normalize,
    Pooling,
    Transformer,
)

from emo.config_models import StudentSettings, TeacherSettings
from emo.encoder import load_encoder, pad
from emo.errors import ConfigError, DataError
from emo.models import prepare_model

from ...tiny_decoders import TEXTS, sentencepiece_tokenizer, write_folder

PROMPTS = {"query": "query : ", "passage": "the "}


def write_sentence_folder(folder, heads, name="bert", **options):
    """Write a folder as its publisher would, with sentence-transformers alone."""
    plain = write_folder(name, folder / "plain")
    if name in ("bert", "mpnet", "xlm-roberta"):
        options |= {"model_kwargs": {"add_pooling_layer": False}}
    transformer = Transformer(str(plain), max_seq_length=16, **options)
    model = SentenceTransformer(modules=[transformer, *heads], prompts=PROMPTS, device="cpu")
    model.save(str(folder / "published"), create_model_card=False)
    return folder / "published"


def encode(folder, texts=TEXTS, **keys):
    model = SentenceTransformer(str(folder), local_files_only=True, device="cpu")
    return torch.from_numpy(model.encode(texts, **keys))


def our_vectors(folder):
    encoder = load_encoder(folder, device=torch.device("cpu")).eval()
    with torch.no_grad():
        return encoder(*pad(encoder.tokenizer()(TEXTS), encoder.pad_id)).vectors


def teacher(**keys):
    keys = {"source": {"path": "x"}, "format": "sentence-transformers", "max_length": 16} | keys
    return TeacherSettings(**keys)


def dense(width_in=32, width_out=20):
    torch.manual_seed(5)
    return Dense(width_in, width_out, activation_function=torch.nn.GELU())


HEADS = {
    "cls": lambda: [Pooling(32, "cls"), Normalize()],
    "two poolings, no length": lambda: [Pooling(32, ("mean", "max"))],
    "dense": lambda: [Pooling(32, "mean"), dense(), Normalize()],
    "two dense": lambda: [Pooling(32, "lasttoken"), dense(), dense(20, 40)],
    "no prompt": lambda: [Pooling(32, "mean", include_prompt=False), Normalize()],
}


@pytest.mark.parametrize("name", HEADS)
def test_the_folder_s_own_modules_are_kept(tmp_path, name):
    published = write_sentence_folder(tmp_path, HEADS[name]())
    prepare_model(teacher(), published, tmp_path / "out")
    expected = encode(published)
    torch.testing.assert_close(encode(tmp_path / "out"), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(our_vectors(tmp_path / "out"), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"prompt_name": "query"}, {"prompt_name": "query"}),
        ({"prompt_name": "passage"}, {"prompt_name": "passage"}),
        ({"prompt": "a dog "}, {"prompt": "a dog "}),
        ({}, {}),
    ],
)
def test_prompts_by_name_or_our_own(tmp_path, keys, expected):
    published = write_sentence_folder(tmp_path, HEADS["cls"]())
    prepare_model(teacher(**keys), published, tmp_path / "out")
    torch.testing.assert_close(encode(tmp_path / "out"), encode(published, **expected))


def test_the_folder_s_default_prompt_is_kept_and_unknown_names_are_refused(tmp_path):
    published = write_sentence_folder(tmp_path, HEADS["cls"]())
    path = published / "config_sentence_transformers.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"default_prompt_name": "query"}))
    prepare_model(teacher(), published, tmp_path / "out")
    model = load_encoder(tmp_path / "out", device=torch.device("cpu"))
    assert model.tokenizer().prompt == PROMPTS["query"]
    torch.testing.assert_close(encode(tmp_path / "out"), encode(published))
    with pytest.raises(ConfigError, match="no prompt `query2`; did you mean `query`"):
        prepare_model(teacher(prompt_name="query2"), published, tmp_path / "out")


def test_lower_casing_of_the_folder_is_kept(tmp_path):
    """Old folders tell it beside the tokenizer, whose own file knows nothing of it."""
    tokenizer = sentencepiece_tokenizer(pad="</s>")
    plain = write_folder("mistral", tmp_path / "plain", tokenizer=tokenizer)
    model = SentenceTransformer(modules=[Transformer(str(plain)), Pooling(32)], device="cpu")
    published = tmp_path / "published"
    model.save(str(published), create_model_card=False)
    prepare_model(teacher(), published, tmp_path / "cased")
    lower, upper = encode(tmp_path / "cased", ["the cat", "THE Cat"])
    assert (upper - lower).abs().max() > 1e-3
    path = published / "sentence_bert_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"do_lower_case": True}))
    prepare_model(teacher(), published, tmp_path / "out")
    lower, upper = encode(tmp_path / "out", ["the cat", "THE Cat"])
    torch.testing.assert_close(upper, lower)


def test_a_transformer_in_a_folder_of_its_own(tmp_path):
    published = write_sentence_folder(tmp_path, HEADS["dense"]())
    inner = published / "0_Transformer"
    inner.mkdir()
    for path in published.iterdir():
        keep = ("modules.json", "config_sentence_transformers.json")
        if path.is_file() and path.name not in keep:
            path.rename(inner / path.name)
    path = published / "modules.json"
    modules = json.loads(path.read_text())
    modules[0]["path"] = inner.name
    path.write_text(json.dumps(modules))
    prepare_model(teacher(), published, tmp_path / "out")
    torch.testing.assert_close(encode(tmp_path / "out"), encode(published))


def test_a_student_keeps_the_folder_s_pooling_and_has_no_dense(tmp_path):
    keys = {"source": {"path": "x"}, "format": "sentence-transformers", "max_length": 16}
    published = write_sentence_folder(tmp_path / "a", HEADS["cls"]())
    prepare_model(StudentSettings(**keys, layers=[0, 1, 2]), published, tmp_path / "out")
    torch.testing.assert_close(encode(tmp_path / "out"), encode(published))
    published = write_sentence_folder(tmp_path / "b", HEADS["dense"]())
    with pytest.raises(DataError, match="has a Dense module, which only a teacher may have"):
        prepare_model(StudentSettings(**keys), published, tmp_path / "out")


def rewritten(folder, change):
    path = folder / "modules.json"
    modules = json.loads(path.read_text())
    change(modules)
    path.write_text(json.dumps(modules))
    return folder


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda ms: ms[1].update(type="theirs.Pooling"), "has a Pooling module .* of sentence-tr"),
        (lambda ms: ms.pop(1), "needs one Pooling right behind"),
        (lambda ms: ms.append(ms[1]), "needs one Pooling right behind"),
        (lambda ms: ms.pop(0), "has a Pooling module in modules.json where only Transformer"),
        (lambda ms: ms[2].update(path="../../plain"), "points outside the folder"),
    ],
)
def test_modules_that_are_not_supported_are_named(tmp_path, change, message):
    published = rewritten(write_sentence_folder(tmp_path, HEADS["dense"]()), change)
    with pytest.raises(DataError, match=message):
        prepare_model(teacher(), published, tmp_path / "out")


def test_other_kinds_of_modules_and_plain_folders_are_named(tmp_path):
    published = write_sentence_folder(tmp_path, [Pooling(32), Dropout(0.1)])
    with pytest.raises(DataError, match="has a Dropout module in modules.json where only Pooling"):
        prepare_model(teacher(), published, tmp_path / "out")
    with pytest.raises(DataError, match="has no modules.json"):
        prepare_model(teacher(), tmp_path / "plain", tmp_path / "out")


@pytest.mark.parametrize(
    ("place", "key", "value", "message"),
    [
        (
            "1_Pooling",
            "embedding_dimension",
            31,
            "Pooling module declares vectors of width 31, .* 32",
        ),
        ("2_Dense", "in_features", 31, "cannot load 2_Dense"),
        ("2_Dense", "activation_function", "os.system", "activation_function `os.system` is not"),
    ],
)
def test_a_folder_that_disagrees_with_itself_is_refused(tmp_path, place, key, value, message):
    published = write_sentence_folder(tmp_path, HEADS["dense"]())
    path = published / place / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(DataError, match=message):
        prepare_model(teacher(), published, tmp_path / "out")


def test_a_dense_module_of_another_model_is_refused(tmp_path):
    published = write_sentence_folder(tmp_path / "a", HEADS["dense"]())
    other = write_sentence_folder(tmp_path / "b", [Pooling(32, ("mean", "max")), dense(64, 8)])
    for name in ("config.json", "model.safetensors"):
        (published / "2_Dense" / name).write_bytes((other / "2_Dense" / name).read_bytes())
    with pytest.raises(DataError, match="Dense module declares vectors of width 64, .* gives 32"):
        prepare_model(teacher(), published, tmp_path / "out")
