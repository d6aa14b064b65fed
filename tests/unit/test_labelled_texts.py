"""Text sets that keep the labels of a task's train rows."""

import shutil

import numpy as np
import pandas as pd
import pytest

from emo.errors import ConfigError, DataError
from emo.labelled_texts import gather_labelled_texts, load_targets
from emo.outputs import read_json
from emo.supervised_rows import read_supervised_rows
from emo.texts import load_texts, text_key

from ..tiny_models import write_texts


def test_each_train_row_is_a_text_with_the_number_of_its_class(labelled):
    files = labelled("classification")
    train = pd.read_parquet(files.task / "train.parquet")
    texts, targets = load_texts(files.texts), load_targets(files.texts)
    assert texts.texts == train["text"].tolist()
    assert texts.keys == [text_key(text) for text in texts.texts]
    assert targets.labels == ["person", "place", "thing"]
    assert targets.values.dtype == np.int64
    assert [targets.labels[number] for number in targets.values] == train["label"].tolist()


def test_a_repeated_text_keeps_the_label_of_each_row(labelled):
    files = labelled("classification")
    texts, targets = load_texts(files.texts), load_targets(files.texts)
    assert texts.keys[:2] == texts.keys[-2:]
    assert targets.values[:2].tolist() != targets.values[-2:].tolist()


@pytest.mark.parametrize("family", ["sts", "pairs"])
def test_pairs_are_one_text_each(labelled, family):
    files = labelled(family)
    train = pd.read_parquet(files.task / "train.parquet")
    targets = load_targets(files.texts)
    assert load_texts(files.texts).texts == list(
        zip(train["sentence1"], train["sentence2"], strict=True)
    )
    gold = train["score" if family == "sts" else "label"]
    np.testing.assert_allclose(targets.values, gold, rtol=1e-6)
    assert targets.labels == ([] if family == "sts" else ["0", "1"])
    assert targets.values.dtype == (np.float32 if family == "sts" else np.int64)


def test_rows_with_tested_texts_are_left_out_as_in_a_tuning(tasks, tmp_path):
    """Teacher and student must number the same classes on the same rows."""
    other = tmp_path / "other"
    other.mkdir()
    train = pd.read_parquet(tasks("classification") / "train.parquet")
    pd.DataFrame({"text": [train["text"][3].upper()]}).to_parquet(other / "test.parquet")
    out = tmp_path / "texts.parquet"
    report = gather_labelled_texts([tasks("classification")], [other], out)
    assert load_texts(out).texts == train["text"].drop(index=3).tolist()
    assert (report.texts, report.leaked, report.given) == (35, 1, {"classification": 36})
    assert read_json(out.with_suffix(".json"))["leaked"] == 1
    rows = read_supervised_rows(tasks("classification"), [other])
    assert load_targets(out).labels == rows.labels
    assert load_targets(out).values.tolist() == rows.train.targets.tolist()


def test_a_set_without_labels_has_no_targets(tmp_path):
    write_texts(["a cat", "a dog"], tmp_path / "texts.parquet")
    assert load_targets(tmp_path / "texts.parquet") is None


def test_two_tasks_and_lost_classes_are_refused(tasks, labelled, tmp_path):
    both = [tasks("sts"), tasks("pairs")]
    with pytest.raises(ConfigError, match="labels of one task; name one"):
        gather_labelled_texts(both, [], tmp_path / "texts.parquet")
    path = tmp_path / "texts.parquet"
    shutil.copy(labelled("classification").texts, path)
    table = pd.read_parquet(path)
    table[table["target"] != 1].to_parquet(path)
    with pytest.raises(DataError, match="a class has no text; build the text set again"):
        load_targets(path)
