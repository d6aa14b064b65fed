import pandas as pd
import pytest

from emo.errors import DataError
from emo.texts import count_texts, load_texts, text_chunks, text_key

from ..tiny_models import write_texts


def test_a_missing_set_is_named(tmp_path):
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
