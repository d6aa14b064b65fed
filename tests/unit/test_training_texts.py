import json
from hashlib import sha256
from itertools import pairwise

import pandas as pd
import pytest

from emo.config_tasks import TextSettings
from emo.errors import ConfigError, DataError
from emo.texts import load_texts, text_key
from emo.training_texts import TextsReport, build_texts, gather_texts, task_texts


@pytest.fixture
def task(tmp_path):
    def write(name, texts, test):
        folder = tmp_path / name
        folder.mkdir()
        pd.DataFrame({"text": texts}, dtype="str").to_parquet(folder / "texts.parquet")
        pd.DataFrame(test).to_parquet(folder / "test.parquet")
        return folder

    return write


def test_texts_are_united_in_order_without_repeats_and_test_texts(task, tmp_path):
    sts = task(
        "sts",
        ["b", "a", "Seen in TREC?", "!", "\U0001f600 \U0001f680"],
        {"sentence1": ["q"], "sentence2": ["Seen in pairs"], "score": [1.0]},
    )
    trec = task(
        "trec",
        ["a", "c", "seen, in pairs"],
        {"text": ["seen in trec", "\U0001f600\U0001f680"], "label": ["c", "c"]},
    )
    out = tmp_path / "texts" / "all.parquet"
    report = build_texts(task_texts([sts, trec]), [trec, sts], out)
    texts = load_texts(out)
    assert texts.texts == ["b", "a", "!", "c"]
    assert texts.keys == [text_key(text) for text in texts.texts]
    assert (report.duplicates, report.leaked, report.texts) == (1, 3, 4)
    written = json.loads((tmp_path / "texts" / "all.json").read_text("utf-8"))
    assert written["given"] == report.given == {"sts": 5, "trec": 3}


def test_a_label_is_not_taken_for_a_test_text(task, tmp_path):
    """The label column of a test split holds words too, such as `abbreviation`."""
    trec = task("trec", ["c"], {"text": ["x"], "label": ["c"]})
    assert build_texts(task_texts([trec]), [trec], tmp_path / "t.parquet").texts == 1


def test_nothing_left_is_an_error(task, tmp_path):
    trec = task("trec", ["X!"], {"text": ["x"], "label": ["c"]})
    with pytest.raises(DataError, match=r"t\.parquet: no text is left of 1"):
        build_texts(task_texts([trec]), [trec], tmp_path / "t.parquet")


def test_a_missing_task_is_named(tmp_path):
    with pytest.raises(DataError, match=r"texts\.parquet is missing; prepare the task first"):
        task_texts([tmp_path])


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.csv"
    rows = {"words": ["one", "two,\nlines", " ", "one", "Tested!", *"abcdefgh"], "from": "x"}
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def settings(**keys):
    given = {"corpus": {"source": {"path": "corpus.csv"}, "column": "words"}} | keys
    return TextSettings.model_validate(given)


def test_a_file_gives_its_texts_but_for_those_tested_on(task, corpus, tmp_path, caplog):
    trec = task("trec", ["unused"], {"text": ["tested"], "label": ["c"]})
    out = tmp_path / "t.parquet"
    report = gather_texts([], corpus, settings(), [trec], out)
    assert load_texts(out).texts == ["one", "two,\nlines", *"abcdefgh"]
    assert report == TextsReport({"corpus.csv": 12}, 1, 1, 0, 10)
    assert "dropped 1 rows without text" in caplog.text
    assert "rows 3" in caplog.text


def test_fewer_texts_are_part_of_more_in_their_order(corpus, tmp_path):
    kept = []
    for limit in (3, 6, 11):
        gather_texts([], corpus, settings(limit=limit), [], tmp_path / "t.parquet")
        kept.append(load_texts(tmp_path / "t.parquet").texts)
    assert [len(texts) for texts in kept] == [3, 6, 11]
    for fewer, more in pairwise(kept):
        assert fewer == [text for text in more if text in fewer]
    # By digests of what is written here, so that any machine takes the same.
    digest = {text: sha256(f"limit\t{text}".encode()).hexdigest() for text in kept[2]}
    assert set(kept[0]) == set(sorted(kept[2], key=digest.get)[:3])


def test_too_high_a_limit_is_refused(corpus, tmp_path):
    with pytest.raises(DataError, match=r"11 texts are fewer than `limit: 12`; lower it"):
        gather_texts([], corpus, settings(limit=12), [], tmp_path / "t.parquet")


def test_a_column_that_is_not_there_is_named(corpus, tmp_path):
    wrong = settings(corpus={"source": {"path": "corpus.csv"}, "column": "word"})
    with pytest.raises(DataError, match=r"has no column `word`; did you mean `words`"):
        gather_texts([], corpus, wrong, [], tmp_path / "t.parquet")


def test_tasks_and_a_file_do_not_mix(task, corpus, tmp_path):
    trec = task("trec", ["c"], {"text": ["x"], "label": ["c"]})
    for tasks, path, given in (
        ([trec], corpus, settings()),
        ([], None, None),
        ([], corpus, None),
        ([trec], None, settings()),
    ):
        with pytest.raises(ConfigError, match="either tasks, or --corpus"):
            gather_texts(tasks, path, given, [], tmp_path / "t.parquet")
