"""Stored rows and their selection against slow loops over single texts."""

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from emo.alignment import read_alignment
from emo.alignment.table import write_alignment
from emo.attention_rows import layer_pairs, store_rows
from emo.errors import DataError
from emo.requests import RowRequest
from emo.store import Store
from emo.texts import text_key

from ..plain_models import PlainModel, received_attention
from ..tiny_models import STUDENT_PROMPT, TEACHER_PROMPT


@pytest.fixture(scope="module")
def teacher(tiny):
    return PlainModel(tiny.teacher, TEACHER_PROMPT)


@pytest.fixture(scope="module")
def student(tiny):
    return PlainModel(tiny.student, STUDENT_PROMPT)


def pairs_of(tiny, method, row):
    table = read_alignment(tiny.alignment(method))
    inside = table.text == row
    return list(
        zip(
            table.teacher_position[inside].tolist(),
            table.student_position[inside].tolist(),
            strict=True,
        )
    )


def stored(store, row, layers):
    """Return (teacher positions, student positions, values (k, m, R)) of a text."""
    inside = slice(store["offsets"][row], store["offsets"][row + 1])
    teacher = store["teacher_position"][inside].tolist()
    student = store["student_position"][inside].tolist()
    values = store["values"][store["value_offsets"][row] : store["value_offsets"][row + 1]]
    width = len(values) // max(layers * len(teacher), 1)
    return teacher, student, np.asarray(values).reshape(layers, len(teacher), width)


def paper_text(student, text):
    """Method-evidence 1.1, step 1, for one text."""
    decoded = student.tokenizer.decode(student(text).ids, skip_special_tokens=True)
    return re.sub(r"[^\w\s]", "", decoded.lower())


def paper_selection(teacher, text, pairs):
    """Method-evidence 1.2 and 1.3: the top n // 3 of the stop-word-free pass, not re-paired."""
    words = [word for word in re.sub(r"\d", "", text).split() if word != "."]
    content = teacher(" ".join(word for word in words if word not in ENGLISH_STOP_WORDS))
    sums = received_attention(content.attention[-1], [True] * len(content.ids))
    ranked = sorted(range(len(sums)), key=lambda place: (-sums[place], place))
    top = {content.ids[place] for place in ranked[: len(pairs) // 3]}
    ids = teacher(text).ids
    kept = [(t, s) for t, s in pairs if ids[t] in top]
    return sorted(t for t, _ in kept), sorted(s for _, s in kept)


def test_emo_takes_the_most_important_mapped_pairs(tiny, teacher):
    """Always paired: row i of both sides belongs to one mapped token."""
    store = Store(tiny.rows("emo-k1-m8"))
    for row, text in enumerate(tiny.texts_read):
        read = teacher(text)
        counted = [not special for special in read.special]
        sums = np.array(received_attention(read.attention[-1], counted))
        pairs = pairs_of(tiny, "mined", row)
        chosen_teacher, chosen_student, _ = stored(store, row, 1)
        assert len(chosen_teacher) == min(8, len(pairs))
        assert set(zip(chosen_teacher, chosen_student, strict=True)) <= set(pairs)
        left = [t for t, _ in pairs if t not in chosen_teacher]
        if left:
            assert sums[chosen_teacher].min() >= sums[left].max() - 1e-5
        assert (np.diff(sums[chosen_teacher]) <= 1e-5).all(), "most important first"


def test_paper_selection_is_that_of_the_slow_reference(tiny, teacher, student):
    store = Store(tiny.rows("emo-paper-k2"))
    counts = []
    for row, text in enumerate(tiny.texts_read):
        pairs = pairs_of(tiny, "mined-types", row)
        expected = paper_selection(teacher, paper_text(student, text), pairs)
        assert stored(store, row, 2)[:2] == expected, text
        counts.append(len(expected[0]))
    assert max(counts) >= 2, "the texts must exercise the selection"
    assert 0 in counts, "and a text that gives nothing"


def test_paper_rows_are_sorted_on_each_side_and_not_paired_again(tiny, teacher, student, tmp_path):
    """The authors' oddity, kept on purpose; a map that crosses shows it."""
    table = read_alignment(tiny.alignment("mined-types"))
    crossed = np.concatenate(
        [table.student_position[table.text == row][::-1] for row in range(len(tiny.texts_read))]
    )
    write_alignment(replace(table, student_position=crossed), tmp_path / "crossed.parquet")
    store_rows(
        RowRequest("emo-paper", 1),
        teacher=tiny.teacher,
        student=tiny.student,
        texts=tiny.texts,
        store=tiny.store,
        alignment=tmp_path / "crossed.parquet",
        out=tmp_path / "rows",
    )
    store = Store(tmp_path / "rows")
    for row, text in enumerate(tiny.texts_read):
        inside = table.text == row
        pairs = list(zip(table.teacher_position[inside], crossed[inside], strict=True))
        expected = paper_selection(teacher, paper_text(student, text), pairs)
        assert stored(store, row, 1)[:2] == expected, text


@pytest.mark.parametrize(("name", "layers"), [("emo-k1-m8", [3]), ("emo-paper-k2", [1, 3])])
def test_values_are_the_eager_attention_of_the_text_alone(tiny, teacher, student, name, layers):
    """The teacher's prompt takes part in its attention, but has no column."""
    store = Store(tiny.rows(name))
    for row, text in enumerate(tiny.texts_read):
        read = teacher(paper_text(student, text) if "paper" in name else text)
        positions, _, values = stored(store, row, len(layers))
        if positions:
            expected = read.attention[layers][:, positions].numpy()
            np.testing.assert_allclose(values, expected, atol=1e-5)


def test_rows_are_keyed_by_the_text(tiny):
    keys = [text_key(text) for text in tiny.texts_read]
    assert Store(tiny.rows("emo-paper-k2")).rows(keys).tolist() == list(range(len(keys)))


def test_the_identity_follows_signals_map_and_request(tiny):
    """Rows of another map or depth may not be taken for these."""
    emo, paper = (Store(tiny.rows(name)).identity for name in ("emo-k1-m8", "emo-paper-k2"))
    assert emo["signals"] == paper["signals"] == Store(tiny.store).digest
    assert emo["alignment"] != paper["alignment"]
    assert (emo["request"], emo["student_layers"]) == (["emo", 1, 8], 2)


def test_layer_pairs():
    """The block map g(i) = i * b + b - 1 with b = N_T // N_S."""
    assert layer_pairs(12, 32, last=2) == [(10, 21), (11, 23)]
    assert layer_pairs(12, 24, last=1) == [(11, 23)]
    assert layer_pairs(2, 4, last=2) == [(0, 1), (1, 3)]
    assert layer_pairs(3, 3, last=3) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize(("student_layers", "last"), [(2, 3), (5, 1)])
def test_layers_that_do_not_exist_are_refused(student_layers, last):
    with pytest.raises(DataError, match="ask for fewer `layers` in the method"):
        layer_pairs(student_layers, 4, last)


def test_more_layers_than_the_student_has_stop_the_stage(tiny, tmp_path):
    with pytest.raises(DataError, match="cannot compare the last 3 of 2 student layers"):
        store_rows(
            RowRequest("emo", 3, 8),
            teacher=tiny.teacher,
            student=tiny.student,
            texts=tiny.texts,
            store=tiny.store,
            alignment=tiny.alignment("mined"),
            out=tmp_path / "rows",
        )
    assert not (tmp_path / "rows").exists()
