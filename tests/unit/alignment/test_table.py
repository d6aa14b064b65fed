"""The joined table and its file."""

from dataclasses import fields

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from emo.alignment import Alignment, align, read_alignment, write_alignment
from emo.errors import DataError

TEXTS = ["the cat", "", "hello world"]


def test_file_round_trip(tmp_path, teacher, student):
    alignment = align(TEXTS, teacher, student, "mined")
    write_alignment(alignment, tmp_path / "new" / "mined.parquet")
    read = read_alignment(tmp_path / "new" / "mined.parquet")
    assert len(alignment.text)
    assert read.statistics == alignment.statistics
    for field in fields(Alignment)[:-1]:
        before, after = getattr(alignment, field.name), getattr(read, field.name)
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
