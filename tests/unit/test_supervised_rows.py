"""Rows that nothing can be learned from are named before anything is spent."""

import json
import shutil

import pandas as pd
import pytest

from emo.errors import DataError
from emo.supervised_rows import read_supervised_rows


@pytest.fixture
def edited(tasks, tmp_path):
    """Copy a family's task with one split changed."""

    def edited(family, split, change):
        folder = tmp_path / family
        shutil.copytree(tasks(family), folder)
        path = folder / f"{split}.parquet"
        change(pd.read_parquet(path)).to_parquet(path)
        return folder

    return edited


def test_classes_are_numbered_in_the_order_of_their_names(tasks):
    rows = read_supervised_rows(tasks("classification"), ())
    assert rows.labels == ["person", "place", "thing"]
    train = pd.read_parquet(tasks("classification") / "train.parquet")
    assert [rows.labels[number] for number in rows.train.targets] == train["label"].tolist()
    assert rows.train.texts == [(text,) for text in train["text"]]
    assert rows.train.left_out == 0


@pytest.mark.parametrize(("family", "column"), [("sts", "score"), ("pairs", "label")])
def test_pairs_keep_their_order_and_their_targets(tasks, family, column):
    rows = read_supervised_rows(tasks(family), ())
    table = pd.read_parquet(tasks(family) / "validation.parquet")
    assert rows.validation.targets.tolist() == table[column].tolist()
    sides = zip(table["sentence1"], table["sentence2"], strict=True)
    assert rows.validation.texts == list(sides)


def test_a_missing_split_is_named(tasks, tmp_path):
    folder = tmp_path / "task"
    shutil.copytree(tasks("sts"), folder)
    (folder / "validation.parquet").unlink()
    with pytest.raises(DataError, match=r"validation\.parquet is missing; prepare the task first"):
        read_supervised_rows(folder, ())


@pytest.mark.parametrize("split", ["train", "validation"])
@pytest.mark.parametrize(
    ("family", "change", "said"),
    [
        ("sts", lambda t: t.drop(columns="score"), "split has no column score"),
        ("sts", lambda t: t.drop(columns="sentence2"), "split has no column sentence2"),
        ("pairs", lambda t: t.assign(label=t["label"].where(t.index != 4)), "row 5 of the .* no l"),
        ("pairs", lambda t: t[t["label"] == 1], "every .* row has the label 1; nothing can"),
        ("sts", lambda t: t.assign(score=2.5), "every .* row has the score 2.5; nothing can"),
        (
            "sts",
            lambda t: t.assign(score=20 * t["score"]),
            "scores are 0 to 5 where they ar",
        ),
        ("sts", lambda t: t.assign(score=t["score"] - 3), "has the score -.* rescale the column"),
        ("sts", lambda t: t[:0], "no .* row is left of 0 to learn from"),
        ("classification", lambda t: t[t["label"] == "place"], "every .* has the label 'place'"),
    ],
)
def test_rows_that_cannot_be_learned_from_are_named(edited, split, family, change, said):
    folder = edited(family, split, change)
    with pytest.raises(DataError, match=said) as caught:
        read_supervised_rows(folder, ())
    assert split in str(caught.value)


def test_scores_of_another_scale_are_not_taken_for_low_ones(edited):
    folder = edited("sts", "train", lambda t: t.assign(score=t["score"] / 5))
    with pytest.raises(DataError, match=r"train split is above 0.*, as if the scale"):
        read_supervised_rows(folder, ())


def test_a_class_that_training_lacks_is_named(edited):
    folder = edited("classification", "train", lambda t: t[t["label"] != "thing"])
    with pytest.raises(DataError, match=r"validation split has the labels thing, which no train r"):
        read_supervised_rows(folder, ())


def test_texts_that_are_tested_on_are_left_out_of_both_splits(tasks, tmp_path):
    """In whatever form: case, punctuation and spacing make no other text."""
    train, validation = (
        pd.read_parquet(tasks("sts") / f"{split}.parquet") for split in ("train", "validation")
    )
    other = tmp_path / "other"
    other.mkdir()
    tested = [train["sentence2"][3].upper(), f"{train['sentence1'][5]} !"]
    tested.append(validation["sentence1"][0])
    pd.DataFrame({"text": tested}).to_parquet(other / "test.parquet")
    rows = read_supervised_rows(tasks("sts"), (other,))
    assert (rows.train.left_out, rows.validation.left_out) == (2, 1)
    kept = train.drop(index=[3, 5])
    assert rows.train.texts == list(zip(kept["sentence1"], kept["sentence2"], strict=True))
    assert rows.train.targets.tolist() == kept["score"].tolist()


def test_nothing_left_is_an_error(tasks, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    train = pd.read_parquet(tasks("classification") / "train.parquet")
    train[["text"]].to_parquet(other / "test.parquet")
    with pytest.raises(DataError, match="no train row is left of 36"):
        read_supervised_rows(tasks("classification"), (other,))


def test_a_task_of_no_family_is_not_guessed(tasks, tmp_path):
    folder = tmp_path / "task"
    shutil.copytree(tasks("sts"), folder)
    report = json.loads((folder / "report.json").read_text())
    assert report["family"] == "sts"
    (folder / "report.json").unlink()
    with pytest.raises(DataError, match=r"report\.json is missing"):
        read_supervised_rows(folder, ())
