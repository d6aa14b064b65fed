"""Evaluation of a tiny model on tiny tasks, against encoding with sentence-transformers by hand."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from sklearn.metrics import average_precision_score, f1_score
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from emo.embedding import describe, embed, load_model
from emo.errors import ConfigError, DataError
from emo.evaluate import evaluate, items_digest
from emo.outputs import write_json
from emo.speed import measure_speed

WORDS = [f"w{number}" for number in range(40)]
PROMPT = "w39 "


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    plain = tmp_path_factory.mktemp("plain")
    vocabulary = {
        word: row for row, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])
    }
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", model_max_length=16,
    ).save_pretrained(plain)  # fmt: skip
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=16, initializer_range=0.5,
    )  # fmt: skip
    BertModel(config, add_pooling_layer=False).save_pretrained(plain)
    model = SentenceTransformer(
        modules=[Transformer(str(plain)), Pooling(16), Normalize()],
        prompts={"default": PROMPT},
        default_prompt_name="default",
        device="cpu",
    )
    folder = tmp_path_factory.mktemp("tiny")
    model.save(str(folder))
    write_json(folder / "model.json", {"weights_sha256": "f" * 64})
    return folder


def sentences(generator, count):
    return [" ".join(generator.choice(WORDS, size=generator.integers(1, 9))) for _ in range(count)]


def write_task(folder, columns, label, sizes=None):
    """Write a task whose texts and labels are random."""
    generator = np.random.default_rng(1)
    for split, size in (sizes or {"train": 40, "validation": 20, "test": 30}).items():
        table = {"row": np.arange(size) * 2 + 5}
        table |= {column: sentences(generator, size) for column in columns}
        table[label] = {
            "label": generator.integers(0, 2, size=size),
            "score": generator.uniform(0, 5, size=size),
        }[label]
        if columns == ["text"]:
            table[label] = table[label].astype(str)
        folder.mkdir(exist_ok=True)
        pd.DataFrame(table).to_parquet(folder / f"{split}.parquet", index=False)
    return folder


def vectors(model_folder, texts):
    return SentenceTransformer(str(model_folder), device="cpu").encode(list(texts))


def outputs(out):
    record = json.loads((out / "scores.json").read_text())
    return record, pd.read_parquet(out / "predictions.parquet")


def cosine_of(model_folder, test):
    left, right = (vectors(model_folder, test[side]) for side in ("sentence1", "sentence2"))
    return (left * right).sum(axis=1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)


def test_classification(model_folder, tmp_path):
    task = write_task(tmp_path / "task", ["text"], "label")
    evaluate(model_folder, task, "trec", "classification", tmp_path / "out")
    record, predictions = outputs(tmp_path / "out")
    test = pd.read_parquet(task / "test.parquet")
    assert predictions["row"].tolist() == test["row"].tolist()
    assert predictions["gold"].tolist() == test["label"].tolist()
    assert record["metrics"]["macro_f1"] == pytest.approx(
        f1_score(predictions["gold"], predictions["predicted"], average="macro")
    )
    assert record["splits"] == {"train": 40, "validation": 20, "test": 30}
    assert (record["task"], record["family"], record["main"]) == (
        "trec",
        "classification",
        "macro_f1",
    )
    assert record["choices"]["C"] in (0.001, 0.01, 0.1, 1.0, 10.0)


def test_sts_is_the_spearman_of_the_models_own_cosines(model_folder, tmp_path):
    task = write_task(tmp_path / "task", ["sentence1", "sentence2"], "score")
    evaluate(model_folder, task, "stsb", "sts", tmp_path / "out")
    record, predictions = outputs(tmp_path / "out")
    test = pd.read_parquet(task / "test.parquet")
    cosine = cosine_of(model_folder, test)
    assert predictions["predicted"].to_numpy() == pytest.approx(cosine, abs=1e-6)
    assert record["metrics"]["spearman"] == pytest.approx(spearmanr(cosine, test["score"])[0])
    validation = pd.read_parquet(task / "validation.parquet")
    assert record["validation"] == pytest.approx(
        spearmanr(cosine_of(model_folder, validation), validation["score"])[0]
    )
    both = pd.concat([validation, test])
    assert record["texts"] == len({*both["sentence1"], *both["sentence2"]})


def test_pairs(model_folder, tmp_path):
    task = write_task(tmp_path / "task", ["sentence1", "sentence2"], "label")
    evaluate(model_folder, task, "pairs", "pairs", tmp_path / "out")
    record, predictions = outputs(tmp_path / "out")
    test = pd.read_parquet(task / "test.parquet")
    assert record["metrics"]["average_precision"] == pytest.approx(
        average_precision_score(test["label"], cosine_of(model_folder, test)), abs=1e-6
    )
    called = predictions["predicted"] >= record["choices"]["threshold"]
    assert record["metrics"]["accuracy"] == pytest.approx((called == test["label"]).mean())


def test_what_a_score_depends_on_is_stored_with_it(model_folder, tmp_path):
    """Pitfalls 95 and 96: prompt, length, pooling and normalisation move scores by points."""
    task = write_task(tmp_path / "task", ["sentence1", "sentence2"], "score")
    evaluate(model_folder, task, "stsb", "sts", tmp_path / "out")
    record, _ = outputs(tmp_path / "out")
    assert record["model"] == {
        "name": model_folder.as_posix(),
        "prompt": PROMPT,
        "max_length": 16,
        "pooling": "mean",
        "normalised": True,
        "parameters": describe(load_model(model_folder), model_folder).parameters,
        "weights_sha256": "f" * 64,
    }


def test_other_files_of_the_output_folder_stay(model_folder, tmp_path):
    task = write_task(tmp_path / "task", ["sentence1", "sentence2"], "score")
    (tmp_path / "out" / "student").mkdir(parents=True)
    evaluate(model_folder, task, "stsb", "sts", tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["predictions.parquet", "scores.json", "student"]


def test_embed_keeps_the_order_and_adds_the_prompt(model_folder, monkeypatch):
    monkeypatch.setattr("emo.embedding.CHUNK", 3)
    texts = ["w1 w2 w3 w4", "w5", "w6 w7", "w8 w9 w10", "w5 w6", "w1"]
    embedded = embed(load_model(model_folder), texts)
    alone = [vectors(model_folder, [text])[0] for text in texts]
    assert embedded == pytest.approx(np.stack(alone), abs=1e-6)
    model = SentenceTransformer(str(model_folder), device="cpu")
    assert np.abs(model.encode(texts, prompt="") - embedded).max() > 1e-3


def test_a_broken_model_is_refused_by_name(model_folder, tmp_path):
    model = load_model(model_folder)
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(float("nan"))
    model.save(str(tmp_path / "broken"))
    task = write_task(tmp_path / "task", ["sentence1", "sentence2"], "score")
    with pytest.raises(DataError, match="broken on stsb is undefined: 20 of 20 vectors"):
        evaluate(tmp_path / "broken", task, "stsb", "sts", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_folders_that_are_none_are_refused(model_folder, tmp_path):
    task = write_task(tmp_path / "task", ["sentence1", "sentence2"], "score")
    with pytest.raises(ConfigError, match=r"nowhere: no modules\.json"):
        evaluate(tmp_path / "nowhere", task, "stsb", "sts", tmp_path / "out")
    with pytest.raises(DataError, match="missing"):
        evaluate(model_folder, tmp_path / "nowhere", "stsb", "sts", tmp_path / "out")


def test_digest_depends_on_texts_in_order_and_not_on_labels():
    table = pd.DataFrame({"sentence1": ["a", "b"], "sentence2": ["c", "d"], "score": [1.0, 2.0]})
    columns = ("sentence1", "sentence2")
    assert items_digest(table, columns) == items_digest(table.assign(score=0.0), columns)
    assert items_digest(table, columns) != items_digest(table[::-1], columns)
    moved = pd.DataFrame({"sentence1": ["a", "b"], "sentence2": ["cd", ""]})
    assert items_digest(table, columns) != items_digest(moved, columns)


def test_speed(model_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("emo.speed.device_name", lambda device: f"a {device.type}")
    texts = sentences(np.random.default_rng(2), 700)
    measure_speed(model_folder, texts, tmp_path / "speed.json")
    record = json.loads((tmp_path / "speed.json").read_text())
    assert record["texts"] == 512
    assert record["texts_per_second"] == pytest.approx(512 / sorted(record["seconds"])[1])
    assert (record["batch_size"], len(record["seconds"])) == (32, 3)
    assert record["device"] in ("a cpu", "a cuda")
    assert record["threads"] == torch.get_num_threads()
    assert {"host", "hostname"}.isdisjoint(record)


def test_speed_without_texts_is_refused(model_folder, tmp_path):
    with pytest.raises(DataError, match=f"no texts to measure the speed of {model_folder}"):
        measure_speed(model_folder, [], tmp_path / "speed.json")
