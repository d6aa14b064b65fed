"""What another student or request asked the teacher is not asked again, to the last bit."""

import logging
import shutil
from dataclasses import replace

import numpy as np
import pytest

from emo.alignment import read_alignment
from emo.alignment.stage import align_texts
from emo.encoder import Encoder
from emo.outputs import read_json, write_json
from emo.requests import RowRequest
from emo.store import Store
from emo.texts import text_key

from ..stores import make_rows, make_store
from ..tiny_models import EMO_ROWS, PAPER_ROWS, write_texts


@pytest.fixture
def passes(monkeypatch):
    """Counts the passes of any model."""
    counted = []
    forward = Encoder.forward

    def count(self, *args):
        counted.append(len(args[0]))
        return forward(self, *args)

    monkeypatch.setattr(Encoder, "forward", count)

    def since():
        number = len(counted)
        counted.clear()
        return number

    return since


def rows_of(tiny, results, student, name, request=None, **changes):
    """Make rows where the workflow makes them."""
    request = request or RowRequest.from_name(name)
    files = {
        "teacher": tiny.teacher,
        "student": tiny.student,
        "texts": tiny.texts,
        "store": tiny.store,
        "alignment": tiny.alignment(request.map.name),
        "reuse": results,
    }
    folder = results / student / "rows" / "texts" / request.name
    return make_rows(request, folder, **(files | changes))


def values(path):
    store = Store(path)
    return [shard.array("values").tobytes() for shard in store.shards]


@pytest.mark.parametrize("name", [EMO_ROWS, PAPER_ROWS])
def test_a_second_student_with_the_same_request_asks_nothing(tiny, tmp_path, passes, name):
    first = rows_of(tiny, tmp_path, "one", name)
    assert passes() > 0
    second = rows_of(tiny, tmp_path, "two", name)
    assert passes() == 0
    assert second.read_bytes() == first.read_bytes(), "the same bytes, found or computed"


def test_fewer_rows_or_layers_are_found_in_more(tiny, tmp_path, passes):
    request = RowRequest.from_name("original.mined.text.m8.paired.k2")
    rows_of(tiny, tmp_path, "one", request.name)
    passes()
    for asked in (replace(request, rows=3), replace(request, layers=1)):
        found = rows_of(tiny, tmp_path, "two", asked.name)
        assert passes() == 0
        alone = rows_of(tiny, tmp_path / "alone" / asked.name, "two", asked.name)
        assert passes() > 0
        assert found.read_bytes() == alone.read_bytes()


def test_of_more_rows_only_what_is_missing_is_asked(tiny, tmp_path, passes):
    """Texts of few tokens gave all their rows the first time."""
    few = RowRequest.from_name("original.mined.text.m4.paired.k1")
    rows_of(tiny, tmp_path, "one", few.name)
    whole = passes()
    more = replace(few, rows=9)
    mixed = rows_of(tiny, tmp_path, "two", more.name)
    assert 0 < passes() <= whole
    alone = rows_of(tiny, tmp_path / "alone", "two", more.name)
    assert mixed.read_bytes() == alone.read_bytes()
    passes()
    rows_of(tiny, tmp_path, "three", replace(few, rows=7).name)
    assert passes() == 0, "what the second one added is there for the third"


def test_layers_of_two_students_together_make_a_third(tiny, tmp_path, passes):
    request = RowRequest.from_name("original.mined.text.m4.paired.k1")
    for student, pair in (("one", (0, 1)), ("two", (1, 3))):
        rows_of(tiny, tmp_path, student, "", replace(request, layers=(pair,)))
    passes()
    both = replace(request, layers=((0, 3), (1, 1)))
    found = rows_of(tiny, tmp_path, "three", "", both)
    assert passes() == 0
    alone = rows_of(tiny, tmp_path / "alone", "three", "", both)
    assert found.read_bytes() == alone.read_bytes()


def changed_prompt(tiny, folder):
    shutil.copytree(tiny.teacher, folder)
    for file in ("model.json", "config_sentence_transformers.json"):
        text = (folder / file).read_text()
        assert "query: " in text
        (folder / file).write_text(text.replace("query: ", "passage: "))
    return folder


@pytest.mark.parametrize("change", ["prompt", "weights", "dtype", "precision"])
def test_what_changes_a_row_is_a_miss(tiny, tmp_path, passes, change):
    """Pitfall 19: keys of the text alone go on serving another prompt's rows."""
    rows_of(tiny, tmp_path / "results", "one", EMO_ROWS)
    changes = {}
    if change == "prompt":
        changes["teacher"] = changed_prompt(tiny, tmp_path / "teacher")
        changes["store"] = make_store(changes["teacher"], tiny.texts, tmp_path / "store")
        changes["alignment"] = tmp_path / "map.parquet"
        models = str(changes["teacher"]), str(tiny.student)
        align_texts(tiny.texts, *models, "mined", changes["alignment"])
    elif change == "weights":
        changes["teacher"] = shutil.copytree(tiny.teacher, tmp_path / "teacher")
        record = read_json(tmp_path / "teacher" / "model.json")
        write_json(tmp_path / "teacher" / "model.json", record | {"weights_sha256": "other"})
        changes["store"] = make_store(changes["teacher"], tiny.texts, tmp_path / "store")
    elif change == "dtype":
        changes["dtype"] = "bfloat16"
    else:
        changes["precision"] = "float16"
    passes()
    rows_of(tiny, tmp_path / "results", "two", EMO_ROWS, **changes)
    assert passes() > 0


def test_a_damaged_shard_is_not_reused(tiny, tmp_path, passes, caplog):
    first = rows_of(tiny, tmp_path, "one", EMO_ROWS)
    before, file = values(first), first.parent / "2-of-2" / "values.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"\x7f")
    passes()
    with caplog.at_level(logging.WARNING):
        second = rows_of(tiny, tmp_path, "two", EMO_ROWS)
    assert passes() > 0
    assert values(second) == before
    assert "not reused: " in caplog.text
    assert "2-of-2/values.npy: damaged" in caplog.text


def test_nothing_is_reused_unless_it_is_named(tiny, tmp_path, passes):
    rows_of(tiny, tmp_path, "one", EMO_ROWS)
    passes()
    rows_of(tiny, tmp_path, "two", EMO_ROWS, reuse=None)
    assert passes() > 0


def test_half_precision_rows_are_within_the_reported_bound(tiny, tmp_path):
    half = Store(rows_of(tiny, tmp_path, "one", EMO_ROWS, precision="float16"))
    full = Store(tiny.rows(EMO_ROWS))
    bound = half.record["row_relative_error_bound"]
    for one, other in zip(half.shards, full.shards, strict=True):
        given = other.array("values").astype(np.float64)
        stored = one.array("values")
        assert stored.dtype == np.float16
        large = given > 6.2e-5
        assert (np.abs(stored - given)[large] <= bound * given[large]).all()
        np.testing.assert_allclose(stored[~large], given[~large], atol=3e-8)


def test_another_order_of_the_texts_gives_close_rows_by_key(tiny, tmp_path):
    """Other batches, so other last digits; but the rows of a text stay with the text."""
    texts = list(tiny.texts_read)[::-2]
    other = write_texts(texts, tmp_path / "texts.parquet")
    models = str(tiny.teacher), str(tiny.student)
    align_texts(other, *models, "mined", tmp_path / "map.parquet", "original")
    store = make_store(tiny.teacher, other, tmp_path / "store")
    changes = {"texts": other, "store": store, "alignment": tmp_path / "map.parquet"}
    shuffled = Store(rows_of(tiny, tmp_path, "one", EMO_ROWS, **changes))
    whole = Store(tiny.rows(EMO_ROWS))
    keys = [text_key(text) for text in texts]
    for name in ("teacher_position", "student_position", "values"):
        pairs = zip(
            shuffled.pieces(name, shuffled.rows(keys)),
            whole.pieces(name, whole.rows(keys)),
            strict=True,
        )
        for one, expected in pairs:
            np.testing.assert_allclose(one, expected, atol=1e-5)


def test_the_alignment_is_read_for_the_shard_alone(tiny, tmp_path):
    """A hundred shards must not each hold the map of all texts."""
    path = tiny.alignment("mined.original")
    whole, part = read_alignment(path), read_alignment(path, range(6, 12))
    inside = (whole.text >= 6) & (whole.text < 12)
    for name in ("text", "teacher_position", "student_position", "distance"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[inside])
    assert part.statistics == whole.statistics
