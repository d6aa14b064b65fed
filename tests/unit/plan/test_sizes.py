"""Foretold sizes beside the folders that the stages then make."""

import numpy as np
import pytest

from emo.alignment.stage import align_texts
from emo.config_store import StoreSettings
from emo.plan import PlannedTraining, Starts, plan, teacher
from emo.plan.sizes import grown, store_bytes
from emo.requests import RowRequest
from emo.store import Shard
from emo.teach_basis import teach_basis

from ...stores import make_rows, make_store
from ...tiny_models import EMO_ROWS, PAPER_ROWS, sentences, write_texts
from .conftest import SHARDS, TEXTS

NOTHING = Starts(stage=0.0, training=0.0)
SETTINGS = [
    {},
    {"states": "float16"},
    {"states": "int4"},
    {"states": "int8", "width": 12},
    {"states": "float16", "tokens": 3},
    {"states": "int4", "width": 12, "tokens": 5},
    {"states": "float32", "tokens": 1000},
    {"states": "online"},
]


def size(folder):
    """All bytes of the shards below a folder."""
    return sum(file.stat().st_size for file in folder.glob("*-of-*/*"))


def foretold(forecast, rule):
    (stage,) = [stage for stage in forecast.stages if stage.rule == rule]
    return stage


@pytest.mark.parametrize("keys", SETTINGS, ids=str)
def test_size_of_a_store(tiny_models, texts, short, tmp_path, keys):
    settings = StoreSettings(**keys)
    forecast = plan(texts, tiny_models.teacher, settings, "float32", SHARDS, None, NOTHING)
    assert forecast.passed_texts < TEXTS / 2, "foretold from a part of the texts"
    if settings.width:
        teach_basis(tiny_models.teacher, texts, tmp_path / "basis", settings.width)
        assert foretold(forecast, "teach_basis").bytes == pytest.approx(
            sum(file.stat().st_size for file in (tmp_path / "basis").iterdir()), rel=0.03
        )
    make_store(tiny_models.teacher, texts, tmp_path, shards=SHARDS, settings=settings)
    stage = foretold(forecast, "teach_shard")
    real = size(tmp_path)
    shards = [Shard(folder) for folder in tmp_path.glob("*-of-*")]
    manifests = sum(shard.manifest_bytes for shard in shards)
    assert stage.jobs == SHARDS
    assert stage.bytes == pytest.approx(real, rel=0.03)
    assert abs(stage.bytes - real) <= 0.1 * manifests, "all but the manifests is exact"
    tokens = sum(shard.totals["tokens"] for shard in shards)
    assert (forecast.texts, forecast.tokens) == (TEXTS, tokens)


@pytest.mark.parametrize(
    ("form", "name", "states", "precision"),
    [
        ("emo", EMO_ROWS, "float32", "float32"),
        ("emo", EMO_ROWS, "int8", "float16"),
        ("emo-paper", PAPER_ROWS, "float32", "float32"),
    ],
)
def test_size_of_attention_rows(
    tiny_models, short, tmp_path, monkeypatch, form, name, states, precision
):
    texts = write_texts(sentences(TEXTS, seed=6), tmp_path / "texts.parquet")
    monkeypatch.setattr(teacher, "LEAST_BATCHES", 8)
    training = PlannedTraining(student=tiny_models.student, method={"form": form})
    settings = StoreSettings(states=states)
    forecast = plan(texts, tiny_models.teacher, settings, "float32", SHARDS, training, NOTHING)
    request = RowRequest.from_name(name)
    store = make_store(tiny_models.teacher, texts, tmp_path / "store", shards=SHARDS)
    models = (str(tiny_models.teacher), str(tiny_models.student))
    alignment = tmp_path / "map.parquet"
    align_texts(texts, *models, request.map.method, alignment, request.map.text)
    make_rows(
        request,
        tmp_path / "rows",
        shards=SHARDS,
        teacher=tiny_models.teacher,
        student=tiny_models.student,
        texts=texts,
        store=store,
        alignment=alignment,
        precision=precision,
    )
    assert foretold(forecast, "teach_rows_shard").bytes == pytest.approx(
        size(tmp_path / "rows"), rel=0.03
    )
    rules = [stage.rule for stage in forecast.stages]
    assert rules == ["teach_shard", *["align"] * (1 + (form == "emo-paper")), "teach_rows_shard"]


@pytest.mark.parametrize("shards", [1, 3])
def test_arrays_are_foretold_to_the_byte(tiny, tmp_path, shards):
    """Of signals and of rows, from the one shard of other stores of the same texts."""
    texts = len(tiny.texts_read)
    shared = {"teacher": tiny.teacher, "texts": tiny.texts}
    rows = shared | {
        "student": tiny.student,
        "store": tiny.store,
        "alignment": tiny.alignment(RowRequest.from_name(EMO_ROWS).map.name),
    }
    for name, make in {
        "signals": lambda folder, count: make_store(
            folder=folder, shards=count, settings=StoreSettings(tokens=3), **shared
        ),
        "rows": lambda folder, count: make_rows(
            RowRequest.from_name(EMO_ROWS), folder, shards=count, **rows
        ),
    }.items():
        make(tmp_path / name / "one", 1)
        make(tmp_path / name / "some", shards)
        one = Shard(tmp_path / name / "one" / "1-of-1")
        some = [Shard(folder) for folder in (tmp_path / name / "some").glob("*-of-*")]
        ragged = {offsets: float(one.array(offsets)[-1]) for offsets in one.offsets.values()}
        total = store_bytes(one, texts, ragged, shards, chunks=shards)
        assert total - shards * one.manifest_bytes == sum(shard.bytes for shard in some)


def test_counts_add_up_on_the_texts_that_they_are_of():
    generator = np.random.default_rng(2)
    lengths, counts = generator.integers(1, 50, size=(2, 30))
    total = grown(counts, lengths, float(lengths.sum()), float((lengths**2).sum()))
    assert total == pytest.approx(counts.sum())


def test_counts_grow_with_the_square_where_they_do():
    generator = np.random.default_rng(1)
    lengths = generator.integers(5, 60, size=400)
    sample = lengths[:60]
    for count in (lambda n: 8 * n, lambda n: n * (n // 3), lambda n: np.minimum(n // 2, 8) * n):
        total = grown(
            count(sample), sample, float(lengths.sum()), float((lengths.astype(float) ** 2).sum())
        )
        assert total == pytest.approx(count(lengths).sum(), rel=0.02)
    nothing = np.zeros(60, dtype=np.int64)
    assert grown(nothing, sample, 1e4, 1e6) == 0.0
