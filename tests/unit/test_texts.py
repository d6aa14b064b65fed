import json

import pandas as pd
import pytest

from emo.errors import DataError
from emo.texts import build_texts, count_texts, load_texts, text_chunks, text_key

from ..tiny_models import write_texts


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
    report = build_texts([sts, trec], [trec, sts], out)
    texts = load_texts(out)
    assert texts.texts == ["b", "a", "!", "c"]
    assert texts.keys == [text_key(text) for text in texts.texts]
    assert (report.duplicates, report.leaked, report.texts) == (1, 3, 4)
    written = json.loads((tmp_path / "texts" / "all.json").read_text("utf-8"))
    assert written["tasks"] == report.tasks == {"sts": 5, "trec": 3}


def test_a_label_is_not_taken_for_a_test_text(task, tmp_path):
    """The label column of a test split holds words too, such as `abbreviation`."""
    trec = task("trec", ["c"], {"text": ["x"], "label": ["c"]})
    assert build_texts([trec], [trec], tmp_path / "t.parquet").texts == 1


def test_nothing_left_is_an_error(task, tmp_path):
    trec = task("trec", ["X!"], {"text": ["x"], "label": ["c"]})
    with pytest.raises(DataError, match=r"t\.parquet: no text is left of 1"):
        build_texts([trec], [trec], tmp_path / "t.parquet")


def test_missing_inputs_are_named(tmp_path):
    with pytest.raises(DataError, match=r"texts\.parquet is missing; prepare the task first"):
        build_texts([tmp_path], [], tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"t\.parquet is missing; build the text set first"):
        load_texts(tmp_path / "t.parquet")


def test_the_key_of_a_text_is_the_digest_of_its_utf8():
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert text_key("abc") == known  # the standard's own example
    assert text_key("\u00fc") != text_key("u\u0308")


def test_a_set_of_pairs_is_read_as_pairs(tmp_path):
    pairs = [("a", "b"), ("a", "c")]
    texts = load_texts(write_texts(pairs, tmp_path / "t.parquet"))
    assert texts.texts == pairs
    assert texts.keys == [text_key(pair) for pair in pairs]


def test_no_two_texts_or_pairs_share_a_key():
    """A pair must not be found under one of its texts, nor under another cut of the same words."""
    texts = [("a", "b"), ("b", "a"), "a", "b", "ab", "a\nb", ("a\nb", ""), ("a", "\nb"), ("", "ab")]
    assert len({text_key(text) for text in texts}) == len(texts)


def test_a_file_that_is_no_text_set_names_the_column(tmp_path):
    pd.DataFrame({"text": ["a"]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"t\.parquet: no column `key`; build the text set again"):
        load_texts(tmp_path / "t.parquet")


@pytest.mark.parametrize("group", [3, 7, 100])
@pytest.mark.parametrize("size", [1, 4, 50])
def test_chunks_are_the_rows_asked_for_whatever_the_file_is_made_of(tmp_path, group, size):
    """Which texts share a pass must not depend on how the file groups its rows."""
    texts = [f"text {number}" for number in range(20)]
    table = pd.DataFrame({"text": texts, "key": [text_key(text) for text in texts]}, dtype="str")
    table.to_parquet(tmp_path / "t.parquet", index=False, row_group_size=group)
    assert count_texts(tmp_path / "t.parquet") == 20
    for rows in (range(20), range(2, 17), range(6, 7), range(5, 5), range(18, 20)):
        chunks = list(text_chunks(tmp_path / "t.parquet", rows, size))
        assert [text for chunk in chunks for text in chunk.texts] == texts[rows.start : rows.stop]
        assert all(chunk.keys == list(map(text_key, chunk.texts)) for chunk in chunks)
        assert [len(chunk.texts) for chunk in chunks[:-1]] == [size] * (len(chunks) - 1)


def test_chunks_of_pairs_and_of_no_file(tmp_path):
    pairs = [("a", "b"), ("c", "d")]
    columns = {"text": ["a", "c"], "second": ["b", "d"], "key": list(map(text_key, pairs))}
    pd.DataFrame(columns, dtype="str").to_parquet(tmp_path / "t.parquet", index=False)
    (chunk,) = text_chunks(tmp_path / "t.parquet", range(2), 5)
    assert chunk.texts == pairs
    with pytest.raises(DataError, match=r"no\.parquet is missing; build the text set first"):
        count_texts(tmp_path / "no.parquet")
