import json

import pandas as pd
import pytest

from emo.config_tasks import TableSettings
from emo.errors import ConfigError, DataError
from emo.tables import read_table, require_columns


@pytest.fixture
def read(tmp_path):
    def write_and_read(content, suffix="csv", **settings):
        path = tmp_path / f"data.{suffix}"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(path, TableSettings(**{"format": suffix, **settings}))

    return write_and_read


def test_csv_keeps_strings_that_look_like_something_else(read):
    table = read("text,label\nNA,01\nnull,1.0\n,x\n")
    assert table.to_dict("list") == {
        "row": [1, 2, 3],
        "text": ["NA", "null", ""],
        "label": ["01", "1.0", "x"],
    }


def test_csv_reads_quoted_line_breaks_as_one_record(read):
    table = read('text,label\n"one\r\ntwo, ""three""",a\nfour,b\n')
    assert list(table["text"]) == ['one\r\ntwo, "three"', "four"]
    assert list(table["row"]) == [1, 2]


def test_csv_skips_blank_lines_and_a_byte_order_mark(read):
    table = read(b"\xef\xbb\xbftext,label\n\na,b\n\n")
    assert table.to_dict("list") == {"row": [1], "text": ["a"], "label": ["b"]}


def test_csv_without_header_takes_the_given_names_and_leaves_further_fields_out(read):
    table = read('3\tone "\ttwo\n4\tx\ty\textra\tmore\n', "tsv", names=list("abc"), quoting=False)
    assert table.to_dict("list") == {
        "row": [1, 2],
        "a": ["3", "4"],
        "b": ['one "', "x"],
        "c": ["two", "y"],
    }


def test_a_row_with_too_few_fields_is_an_error(read):
    with pytest.raises(
        DataError, match=r"row 2 of .*data\.tsv has 2 fields, expected 3 \(a, b, c\)"
    ):
        read("1\t2\t3\n1\t2\n", "tsv", names=list("abc"))


def test_a_row_longer_than_the_header_is_an_error(read):
    with pytest.raises(DataError, match=r"row 1 of .*data\.csv has 3 fields, expected 2"):
        read("text,label\na, b,c\n")


def test_a_stray_quote_does_not_swallow_the_rest_of_the_file(read):
    with pytest.raises(DataError, match=r"row 1 of .*data\.csv.*table\.quoting: false"):
        read('text,label\n"a,b\nc,d\ne,f\n')


def test_fields_may_be_as_long_as_documents(read):
    text = "word " * 30_000  # more characters than the csv module takes of itself
    assert list(read(f"text,label\n{text},a\n")["text"]) == [text]


@pytest.mark.parametrize("record", [{"text": "cut \ud83d"}, {"text": ["\ude00"]}, {"\ud83d": 1}])
def test_half_a_surrogate_pair_is_an_error(read, record):
    """JSON can spell it, but neither a digest nor a parquet file can take it."""
    lines = ['{"text": "\\ud83d\\ude00"}', json.dumps(record)]
    with pytest.raises(DataError, match=r"row 2 of .*data\.jsonl: .*holds \\ud[8e]"):
        read("\n".join(lines), "jsonl")
    assert list(read(lines[0], "jsonl")["text"]) == ["\U0001f600"]


def test_a_header_that_repeats_a_name_is_an_error(read):
    with pytest.raises(DataError, match="two columns `a`"):
        read("a,b,a\n1,2,3\n")


def test_lines_are_matched_whole_and_blank_ones_skipped(read):
    pattern = r"(?P<label>[A-Z]+):(?P<fine>[a-z]+)? (?P<text>.+)"
    table = read("DESC:manner How did\x85 it ?\n\nLOC: Where ?\r\n", "lines", pattern=pattern)
    assert table.to_dict("list") == {
        "row": [1, 3],
        "label": ["DESC", "LOC"],
        "fine": ["manner", ""],
        "text": ["How did\x85 it ?", "Where ?"],
    }


def test_a_line_that_does_not_match_is_an_error(read):
    with pytest.raises(DataError, match=r"row 2 of .*data\.lines does not match .*'no label'"):
        read("A: b\nno label\n", "lines", pattern=r"(?P<label>[A-Z]): (?P<text>.+)")


def test_jsonl_values_become_strings(read):
    records = [{"text": "a", "score": 3.8, "n": 2}, {"text": None, "more": True}]
    table = read("\n".join(map(json.dumps, records)), "jsonl")
    assert table.to_dict("list") == {
        "row": [1, 2],
        "text": ["a", ""],
        "score": ["3.8", ""],
        "n": ["2", ""],
        "more": ["", "true"],
    }


@pytest.mark.parametrize(("line", "fault"), [("{", "is not JSON"), ("[1]", "is not a JSON object")])
def test_jsonl_names_the_row_at_fault(read, line, fault):
    with pytest.raises(DataError, match=rf"row 2 of .*data\.jsonl {fault}"):
        read(f'{{"a": 1}}\n{line}\n', "jsonl")


def test_parquet_values_become_strings(tmp_path):
    path = tmp_path / "data.parquet"
    pd.DataFrame({"text": ["a", None], "label": [1, 0]}, index=[7, 9]).to_parquet(path)
    table = read_table(path, TableSettings(format="parquet"))
    assert table.to_dict("list") == {"row": [1, 2], "text": ["a", ""], "label": ["1", "0"]}


def test_a_broken_parquet_file_is_an_error(read):
    with pytest.raises(DataError, match=r"data\.parquet is not a readable parquet file"):
        read("no parquet", "parquet")


def test_the_wrong_encoding_is_an_error_and_the_right_one_works(read):
    content = "text,label\nx\u00e9,a\n".encode("latin-1")
    with pytest.raises(DataError, match=r"data\.csv is not utf-8 \(byte 0xe9.*table\.encoding"):
        read(content)
    assert list(read(content, encoding="latin-1")["text"]) == ["x\u00e9"]


def test_an_unknown_encoding_is_an_error(read):
    with pytest.raises(ConfigError, match=r"table\.encoding: unknown encoding `utf-9`"):
        read("a\n1\n", encoding="utf-9")


@pytest.mark.parametrize("content", ["", "text,label\n", "\n\n"])
def test_a_file_without_rows_is_an_error(read, content):
    with pytest.raises(DataError, match=r"data\.csv holds no rows"):
        read(content)


def test_a_missing_file_is_named_with_its_neighbour(tmp_path):
    (tmp_path / "train.csv").write_text("a\n1\n")
    with pytest.raises(DataError, match=r"tran\.csv does not exist; did you mean `train\.csv`\?"):
        read_table(tmp_path / "tran.csv", TableSettings())


def test_a_column_of_the_file_called_row_gives_way_to_ours(read, caplog):
    table = read("row,text\n9,a\n")
    assert table.to_dict("list") == {"row": [1], "text": ["a"]}
    assert "its column `row` is left out" in caplog.text


def test_a_missing_column_is_named_with_the_nearest(read, tmp_path):
    table = read("sentence1,label\na,1\n")
    with pytest.raises(DataError, match=r"no column `sentence`; did you mean `sentence1`\?"):
        require_columns(table, ["label", "sentence"], tmp_path / "data.csv")
