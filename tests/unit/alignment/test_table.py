"""The joined table and its file."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emo.alignment import align, read_alignment, write_alignment
from emo.alignment.table import SCHEMA
from emo.errors import DataError
from emo.tokens import TextTokenizer

TEXTS = ["the cat", "", "hello world"]


def test_file_round_trip(tmp_path, teacher, student):
    alignment = align(TEXTS, teacher, student, "mined")
    write_alignment(alignment, tmp_path / "new" / "mined.parquet")
    read = read_alignment(tmp_path / "new" / "mined.parquet")
    assert len(alignment.text)
    assert read.statistics == alignment.statistics
    assert read.origin == alignment.origin is not None
    for name in SCHEMA.names:
        before, after = getattr(alignment, name), getattr(read, name)
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)


def test_a_failed_write_leaves_the_earlier_file(tmp_path, teacher, student, monkeypatch):
    path = tmp_path / "mined.parquet"
    write_alignment(align(TEXTS, teacher, student, "mined"), path)
    before = path.read_bytes()

    def half(table, where):
        where.write_bytes(b"PAR1")
        raise OSError("no space left on device")

    monkeypatch.setattr(pq, "write_table", half)
    with pytest.raises(OSError, match="no space"):
        write_alignment(align(TEXTS[:1], teacher, student, "mined"), path)
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == [before]


def test_no_texts_at_all(tmp_path, teacher, student):
    alignment = align([], teacher, student, "mined")
    write_alignment(alignment, tmp_path / "none.parquet")
    read = read_alignment(tmp_path / "none.parquet")
    assert read.statistics.texts == len(read.text) == 0
    assert read.distance.dtype == np.int32


def test_statistics_count_each_token_once(teacher, student):
    alignment = align(["the the", ""], teacher, student, "mined-masses")
    statistics = alignment.statistics
    distinct = set(zip(alignment.text.tolist(), alignment.teacher_position.tolist(), strict=True))
    assert statistics.pairs == len(alignment.text) > len(distinct)
    assert statistics.teacher_coverage == len(distinct) / statistics.teacher_tokens
    assert statistics.student_coverage == statistics.pairs / statistics.student_tokens
    assert statistics.mean_distance == alignment.distance.mean()
    assert statistics.teacher_unmapped == statistics.teacher_tokens - len(distinct)
    assert statistics.student_unmapped == statistics.student_tokens - statistics.pairs
    assert (statistics.texts, statistics.texts_without_pairs) == (2, 0)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "mined.parquet"
    with pytest.raises(DataError, match="mined.parquet"):
        read_alignment(path)
    pq.write_table(pa.table({"text": [1]}), path)
    with pytest.raises(DataError, match=r"\['text'\]"):
        read_alignment(path)


def test_file_without_statistics_is_refused(tmp_path, teacher, student):
    path = tmp_path / "mined.parquet"
    write_alignment(align(TEXTS, teacher, student, "mined"), path)
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    with pytest.raises(DataError, match="mean_distance"):
        read_alignment(path)


def test_origin_says_what_decides_the_map(tmp_path, teacher, student):
    def origin(method="mined", form="original", **changed):
        changed = {"prompt": "query: ", "max_length": 512} | changed
        other = TextTokenizer(teacher.tokenizer, **changed)
        return align(TEXTS, other, student, method, form).origin

    asked = origin()
    assert (asked.method, asked.form) == ("mined", "original")
    assert len(asked.teacher) == len(asked.student) == 64
    assert asked.teacher == teacher.digest != asked.student == student.digest
    assert origin("span").method == "span"
    assert origin(form="normalised").form == "normalised"
    for changed in ({"prompt": "x: "}, {"max_length": 20}):
        assert origin(**changed) == replace(asked, teacher=origin(**changed).teacher)
        assert origin(**changed).teacher != asked.teacher


def test_a_map_made_by_hand_has_no_origin(tmp_path, teacher, student):
    by_hand = replace(align(TEXTS, teacher, student, "mined"), origin=None)
    write_alignment(by_hand, tmp_path / "mined.parquet")
    assert read_alignment(tmp_path / "mined.parquet").origin is None


def test_statistics_read_as_one_line(teacher, student):
    line = str(align(["the cat", ""], teacher, student, "mined").statistics)
    assert "2 texts, 1 texts without; coverage" in line
    assert "unmapped; mean distance" in line
    assert "ties" in line
    assert "\n" not in line
