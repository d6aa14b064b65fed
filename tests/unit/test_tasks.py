import hashlib
import json

import pandas as pd
import pytest

from emo.config_tasks import TaskSettings
from emo.errors import ConfigError, DataError
from emo.labelled_rows import listed
from emo.tasks import load_split, prepare_task

FILES = {"train": "train.csv", "validation": "dev.csv", "test": "test.csv"}


def settings(family, **keys):
    keys = {"splits": {"files": FILES}, **keys}
    return TaskSettings(family=family, texts="set", source={"path": "anywhere"}, **keys)


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()

    def write(header, **files):
        for name, rows in files.items():
            (folder / f"{name}.csv").write_text("\n".join([header, *rows]) + "\n", "utf-8")
        return folder

    return write


def pairs_source(source, **files):
    rows = {"train": ["a,b,1"], "dev": ["c,d,0", "c,g,1"], "test": ["e,f,1", "e,h,0"], **files}
    return source("sentence1,sentence2,label", **rows)


def test_published_splits_are_kept_as_published(source, tmp_path):
    folder = source(
        "text,label",
        train=["one,a", "one,a", "two,b"],
        dev=[" three ,a"],
        test=["four,b", "four,b", "x,a"],
    )
    report = prepare_task("demo", settings("classification"), folder, tmp_path / "out")
    assert report.sizes == {"train": 3, "validation": 1, "test": 3}
    assert report.labels == ["a", "b"]
    assert report.texts == 2
    validation = load_split(tmp_path / "out", "validation")
    assert validation.to_dict("list") == {"row": [1], "text": [" three "], "label": ["a"]}


def test_rows_that_share_a_text_with_test_leave_the_other_splits(source, tmp_path):
    """A pair leaks by either sentence, in any spelling; its other sentence is still a text."""
    folder = pairs_source(
        source,
        train=["A cat!,a dog,1", "x,THE  BIRD,0", "x,y,1", "?!,y,0"],
        dev=["c,the bird.,1", "c,d,0", "c,e,1"],
        test=["a cat,b,1", "the bird,?!,0"],
    )
    report = prepare_task("demo", settings("pairs"), folder, tmp_path / "out")
    assert report.leaked == {"train": 3, "validation": 1}
    assert list(load_split(tmp_path / "out", "train")["row"]) == [3]
    assert list(load_split(tmp_path / "out", "validation")["row"]) == [2, 3]
    assert list(load_split(tmp_path / "out", "test")["row"]) == [1, 2]
    assert report.leaked_sentences == 3
    assert texts_of(tmp_path / "out") == ["a dog", "x", "y"]


def test_unusable_train_rows_are_dropped_and_named(source, tmp_path, caplog):
    folder = pairs_source(source, train=["a,b,1", ",b,1", "a,\u200b,1", "a,c,0"])
    report = prepare_task("demo", settings("pairs"), folder, tmp_path / "out")
    assert report.unusable == {"train": [2, 3], "validation": [], "test": []}
    assert report.rows_read["train"] == 4
    assert report.sizes["train"] == 2
    assert "train.csv: dropped 2 rows without text" in caplog.text
    assert "rows 2, 3" in caplog.text


def test_unusable_test_rows_stop_unless_allowed(source, tmp_path):
    folder = pairs_source(source, test=["a,b,1", " ,f,0", "e,,1"])
    with pytest.raises(
        DataError,
        match=r"test\.csv: 2 test rows .*rows 2, 3; .*tasks\.demo\.drop_unusable_test_rows",
    ):
        prepare_task("demo", settings("pairs"), folder, tmp_path / "out")
    allowed = settings("pairs", drop_unusable_test_rows=True)
    folder = pairs_source(source, train=["x,y,1"], test=["a,b,1", " ,f,0", "a,f,0"])
    report = prepare_task("demo", allowed, folder, tmp_path / "out")
    assert report.unusable["test"] == [2]
    assert report.sizes["test"] == 2


def test_scores_are_numbers(source, tmp_path):
    rows = {"train": ["a,b,3.5"], "dev": ["c,d,0", "c,x,2"], "test": ["e,f,5", "e,g,1"]}
    folder = source("sentence1,sentence2,gold", **rows)
    task = settings("sts", columns={"score": "gold"})
    report = prepare_task("demo", task, folder, tmp_path / "out")
    assert list(load_split(tmp_path / "out", "train")["score"]) == [3.5]
    assert load_split(tmp_path / "out", "test")["score"].dtype == "float64"
    assert report.labels == []


@pytest.mark.parametrize("value", ["", "high", "nan", "inf"])
def test_a_score_that_is_no_number_is_an_error(source, tmp_path, value):
    folder = source(
        "sentence1,sentence2,score", train=["a,b,1", f"a,c,{value}"], dev=["c,d,0"], test=["e,f,5"]
    )
    with pytest.raises(
        DataError, match=rf"row 2 of .*train\.csv: `score` is '{value}', expected a number"
    ):
        prepare_task("demo", settings("sts"), folder, tmp_path / "out")


def test_pair_labels_come_from_scores_at_the_threshold(source, tmp_path):
    folder = source(
        "sentence1,sentence2,score",
        train=["a,b,2.99", "a,c,3", "x,y,4"],
        dev=["c,d,0", "c,h,4"],
        test=["e,f,5", "e,g,1"],
    )
    task = settings("pairs", columns={"label": "score"}, label_from_score=3.0)
    prepare_task("demo", task, folder, tmp_path / "out")
    train = load_split(tmp_path / "out", "train")
    assert list(train["label"]) == [0, 1, 1]
    assert train["label"].dtype == "int64"


def test_other_pair_labels_are_an_error(source, tmp_path):
    folder = pairs_source(source, dev=["c,d,0", "c,e,entailment"])
    with pytest.raises(
        DataError, match=r"row 2 of .*dev\.csv: `label` is 'entailment', expected 0"
    ):
        prepare_task("demo", settings("pairs"), folder, tmp_path / "out")


def test_a_row_without_class_is_an_error(source, tmp_path):
    folder = source("text,label", train=["a,x", "b, "], dev=["c,x"], test=["d,x"])
    with pytest.raises(DataError, match=r"row 2 of .*train\.csv: `label` is ' ', expected a label"):
        prepare_task("demo", settings("classification"), folder, tmp_path / "out")


def test_a_missing_column_is_an_error(source, tmp_path):
    folder = source("txt,label", train=["a,x"], dev=["c,x"], test=["d,x"])
    with pytest.raises(DataError, match=r"train\.csv has no column `text`; did you mean `txt`"):
        prepare_task("demo", settings("classification"), folder, tmp_path / "out")


def test_one_file_is_cleaned_and_split_by_digest(source, tmp_path):
    rows = [f"text {number},{'xy'[number % 2]}" for number in range(20)]
    folder = source("text,label", all=[*rows, " text 3,y", "both,x", "both,y", " ,x"])
    task = settings("classification", splits={"hash": {"test": 4, "validation": 3}})
    report = prepare_task("demo", task, folder, tmp_path / "out")
    assert report.rows_read == {"all": 24}
    assert report.unusable == {"all": [24]}
    assert (report.duplicates, report.two_labels) == (1, 2)
    assert report.sizes == {"train": 13, "validation": 3, "test": 4}
    assert report.texts == 13
    again = prepare_task("demo", task, folder / "all.csv", tmp_path / "again")
    assert again == report


def test_leaks_of_a_hash_split_are_removed(source, tmp_path):
    """Spellings that differ only in case have different digests, so some land on both sides."""
    rows = [f"{form} {n},{n % 2}" for n in range(30) for form in ("Text", "text")]
    folder = source("text,label", all=rows)
    task = settings("classification", splits={"hash": {"test": 10, "validation": 10}})
    report = prepare_task("demo", task, folder, tmp_path / "out")
    assert sum(report.leaked.values()) > 0
    seen = {
        text.lower()
        for split in ("train", "validation")
        for text in load_split(tmp_path / "out", split)["text"]
    }
    assert seen.isdisjoint(text.lower() for text in load_split(tmp_path / "out", "test")["text"])


def test_an_emptied_split_is_an_error(source, tmp_path):
    folder = pairs_source(source, dev=["E,x,1"])
    with pytest.raises(DataError, match="demo: no validation row is left of 1"):
        prepare_task("demo", settings("pairs"), folder, tmp_path / "out")


@pytest.mark.parametrize(
    ("split", "file"), [("train", "train"), ("validation", "dev"), ("test", "test")]
)
@pytest.mark.parametrize(
    ("family", "needed"),
    [
        ("classification", {"train", "test"}),
        ("pairs", {"validation", "test"}),
        ("sts", {"validation", "test"}),
    ],
)
def test_a_split_of_one_label_is_an_error_where_scores_need_two(
    source, tmp_path, split, file, family, needed
):
    """Here and not after the training, when the evaluation finds its scores undefined."""
    texts = {"classification": "text,label", "pairs": "sentence1,sentence2,label"}
    header = texts.get(family, "sentence1,sentence2,score")
    middle = "" if family == "classification" else ",other"
    labels = {name: "01" for name in ("train", "dev", "test")} | {file: "11"}
    files = {
        name: [f"{name} {n}{middle} {name},{label}" for n, label in enumerate(values)]
        for name, values in labels.items()
    }
    folder = source(header, **files)
    if split not in needed:
        prepare_task("demo", settings(family), folder, tmp_path / "out")
        return
    with pytest.raises(DataError, match=rf"demo: every {split} row has the .*tasks\.demo"):
        prepare_task("demo", settings(family), folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_is_never_a_mixture_of_two_preparations(source, tmp_path, monkeypatch):
    """The process may end between any two files."""
    out = tmp_path / "out"
    prepare_task("demo", settings("pairs"), pairs_source(source), out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def full(path, value):
        raise OSError("no space left on device")

    monkeypatch.setattr("emo.tasks.write_json", full)
    with pytest.raises(OSError, match="no space"):
        prepare_task("demo", settings("pairs"), pairs_source(source, train=["new,b,1"]), out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_splits_and_source_must_fit(source, tmp_path):
    folder = pairs_source(source)
    with pytest.raises(ConfigError, match=r"tasks\.demo\.splits\.files: .*train\.csv is none"):
        prepare_task("demo", settings("pairs"), folder / "train.csv", tmp_path / "out")
    task = settings("pairs", splits={"hash": {"test": 1, "validation": 1}})
    with pytest.raises(
        ConfigError, match=r"holds 3 files where one is wanted; name the file in `tasks\.demo"
    ):
        prepare_task("demo", task, folder, tmp_path / "out")


def test_pairs_need_no_train_split(source, tmp_path):
    files = {"validation": "dev.csv", "test": "test.csv"}
    task = settings("pairs", splits={"files": files})
    report = prepare_task("demo", task, pairs_source(source), tmp_path / "out")
    assert report.sizes == {"train": 0, "validation": 2, "test": 2}
    assert report.texts == 0
    train = load_split(tmp_path / "out", "train")
    assert list(train.columns) == ["row", "sentence1", "sentence2", "label"]


def test_validation_rows_are_taken_out_of_the_train_split_by_digest(source, tmp_path):
    texts = [f"text {number}" for number in range(20)]
    rows = [f"{text},{'ab'[number % 2]}" for number, text in enumerate([*texts, "text 3"])]
    folder = source("text,label", train=rows, test=["x,a", "y,b"])
    files = {"train": "train.csv", "validation": 5, "test": "test.csv"}
    task = settings("classification", splits={"files": files})
    report = prepare_task("demo", task, folder, tmp_path / "out")
    taken = load_split(tmp_path / "out", "validation")["text"].tolist()
    first = sorted(texts, key=lambda text: hashlib.sha256(text.encode()).hexdigest())[:5]
    assert set(taken) == set(first)
    assert report.sizes["train"] + len(taken) == 21
    assert not set(load_split(tmp_path / "out", "train")["text"]) & set(taken)
    few = settings("classification", splits={"files": {**files, "validation": 21}})
    with pytest.raises(DataError, match="demo: 21 usable train rows are too few for 21 validation"):
        prepare_task("demo", few, folder, tmp_path / "out")


def test_the_report_is_on_disk(source, tmp_path):
    report = prepare_task("demo", settings("pairs"), pairs_source(source), tmp_path / "out")
    written = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert written["leaked"] == report.leaked == {"train": 0, "validation": 0}
    assert written["task"] == "demo"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "report.json",
        "test.parquet",
        "texts.parquet",
        "train.parquet",
        "validation.parquet",
    ]


def test_a_task_that_is_not_prepared_is_named(tmp_path):
    with pytest.raises(DataError, match=r"test\.parquet is missing; prepare the task first"):
        load_split(tmp_path, "test")


def test_long_lists_of_rows_are_cut():
    assert listed(range(1, 24)).endswith("19, 20 and 3 more")


def texts_of(folder):
    return list(pd.read_parquet(folder / "texts.parquet")["text"])


def test_a_fraction_thins_the_train_split_and_its_texts_alone(source, tmp_path):
    rows = [f"text {number},{'ab'[number % 2]}" for number in range(20)]
    folder = source("text,label", train=rows, dev=["x,a", "y,b"], test=["v,a", "w,b"])
    folders = {}
    for fraction in (0.2, 0.5, 1.0):
        out = folders[fraction] = tmp_path / str(fraction)
        chosen = settings("classification", train_fraction=fraction)
        report = prepare_task("demo", chosen, folder, out)
        kept = round(20 * fraction)
        assert report.sizes == {"train": kept, "validation": 2, "test": 2}
        assert (report.not_taken, report.texts) == (20 - kept, kept)
        assert texts_of(out) == load_split(out, "train")["text"].tolist()
        assert load_split(out, "train")["label"].value_counts().nunique() == 1
    few, more, every = (set(texts_of(out)) for out in folders.values())
    assert few < more < every
