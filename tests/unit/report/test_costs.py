"""What jobs cost: from made-up files to the table and to the section of the report."""

import dataclasses
import re
from pathlib import Path

import pandas as pd
import pytest

from emo.config import parse_study
from emo.errors import DataError
from emo.jobs import Job, study_jobs
from emo.outputs import read_json, write_json
from emo.report.costs import load_costs, stored_parts
from emo.report.ledger import cost_section, costs_table, write_costs
from emo.tracked_costs import training_costs

from . import conftest as made
from .test_document import cells

COLUMNS = [
    "rule", "teacher", "student", "texts", "task", "request", "method", "seed", "rate", "part",
    "seconds", "peak_memory_mb", "texts_read", "tokens", "bytes", "bytes_per_text",
    "bytes_per_token", "texts_per_second", "device",
]  # fmt: skip
ROWS = "original.mined.text.m8.paired.k1"


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = made.config(seeds=(1, 2))
    config["teachers"]["e5"] = {"source": {"path": "models/x"}, "store": {"width": 128}}
    study = parse_study(config)
    for job in study_jobs(study, lambda folder: made.PARTS):
        if job.rule in ("evaluate", "evaluate_reference"):
            write_json(Path(job.result), {"texts": 170, "device": "cpu"})
        elif job.rule == "speed":
            write_json(Path(job.result), made.speed_record(80.0))
    made.write_costs(study)
    return study


@pytest.fixture
def costs(study):
    return load_costs(study_jobs(study, stored_parts))


def seconds_of(costs, *rules, **of):
    """Sum up by hand."""
    return sum(
        cost.seconds
        for cost in costs
        if cost.job.rule in rules and all(getattr(cost.job, n) == v for n, v in of.items())
    )


def test_every_job_has_a_line_with_its_figures(costs, tmp_path):
    write_costs(costs, tmp_path / "costs.csv")
    table = pd.read_csv(tmp_path / "costs.csv")
    assert list(table.columns) == COLUMNS
    assert len(table) == len(costs)
    assert set(table["rule"].value_counts().to_dict().items()) == {
        ("task", 4), ("texts", 1), ("model", 2), ("speed", 2), ("doctor", 1), ("teach_basis", 1),
        ("teach_shard", 2), ("teach", 1), ("align", 1), ("teach_rows_shard", 2), ("teach_rows", 1),
        ("distil", 4), ("evaluate", 16), ("evaluate_reference", 8),
    }  # fmt: skip
    shard = table[table["part"] == "2-of-2"].iloc[0]
    place = [cost.job.part for cost in costs].index("2-of-2")
    assert (shard["rule"], shard["seconds"], shard["peak_memory_mb"]) == (
        "teach_shard", 100 + place, 1000 + place
    )  # fmt: skip
    assert (shard["texts_read"], shard["tokens"], shard["bytes"]) == (25, 400, 160_000)
    assert (shard["bytes_per_text"], shard["bytes_per_token"]) == (6400, 400)
    assert shard["texts_per_second"] == pytest.approx(25 / shard["seconds"])
    assert shard["device"] == "gpu 1"


def test_a_training_counts_the_texts_of_the_steps_that_its_seconds_are_of(costs):
    """It was resumed at step 100 of 400, and its seconds began there."""
    training = next(cost for cost in costs if cost.job.rule == "distil")
    assert training.work.texts == 300 * 64
    assert training.texts_per_second == pytest.approx(300 * 64 / training.seconds)
    assert training.bytes_per_text is None


def test_memory_of_a_job_too_short_to_be_looked_at_is_empty(study):
    job = Job("texts", texts="all")
    made.write_benchmark(job.benchmark, seconds=0.25, memory="NA")
    (cost,) = load_costs([job])
    assert (cost.seconds, cost.peak_memory) == (0.25, None)
    assert costs_table([cost])["peak_memory_mb"].isna().all()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", r"no benchmark of Snakemake's"),
        ("s\tmax_rss\n", r"no benchmark of Snakemake's"),
        ("seconds\tmemory\n1\t2\n", r"no benchmark of Snakemake's"),
        ("s\tmax_rss\nsoon\t2\n", r"no benchmark of Snakemake's"),
    ],
)
def test_a_damaged_benchmark_is_named(study, content, said):
    job = Job("teach", "e5", texts="all")
    Path(job.benchmark).write_text(content)
    with pytest.raises(DataError, match=re.escape(job.benchmark) + ".*" + said):
        load_costs([job])


def test_a_run_time_that_is_gone_is_unknown_and_told_of(study, caplog):
    """Results stay what they are, so that nothing need run again for the report."""
    shard = Job("teach_shard", "e5", texts="all", part="2-of-2")
    trainings = [job for job in study_jobs(study, stored_parts) if job.method == "pooled"]
    for job in (shard, *(job for job in trainings if job.rule == "distil")):
        Path(job.benchmark).unlink()
    costs = load_costs(study_jobs(study, stored_parts))
    assert f"{shard.benchmark} is gone" in caplog.text
    row = costs_table(costs).query("part == '2-of-2' and rule == 'teach_shard'").iloc[0]
    assert row[["seconds", "peak_memory_mb", "texts_per_second"]].isna().all()
    assert (row["texts_read"], row["bytes_per_text"]) == (25, 6400)
    section = cost_section(costs)
    told = f"Of 3 of {len(costs)} jobs seconds and memory are not known"
    assert told in section
    assert f"`{shard.benchmark}` and others are gone" in section
    first = seconds_of(costs, "teach_shard", part="1-of-2")
    assert cells(section, "teach_shard | e5")[2:6] == [
        "2", f"{first:,.1f}", f"{first:,.1f}", f"{25 / first:,.1f}"
    ]  # fmt: skip
    assert cells(section, "distil | pooled")[2:7] == ["2", "-", "-", "-", "-"]
    emo = seconds_of(costs, "distil", method="emo") / 2
    assert f"4 trainings of {emo:,.0f} s" in section
    by_method = {
        cost.job.method: training_costs(study, cost, costs)
        for cost in costs
        if cost.job.rule == "distil"
    }
    assert not {"teacher_seconds", "student_seconds"} & by_method["pooled"].keys()
    assert {"signal_seconds", "student_seconds"} <= by_method["emo"].keys()
    assert "teacher_seconds" not in by_method["emo"], "a part of the sum is not known"


def test_a_result_that_does_not_say_what_it_cost_is_named(study):
    job = Job("distil", "e5", "minilm", "all", method="emo", seed=1)
    write_json(Path(job.result), {"steps": 400})
    with pytest.raises(DataError, match=re.escape(job.result)):
        load_costs([job])
    shard = Job("teach_shard", "e5", texts="all", part="3-of-3")
    made.write_benchmark(shard.benchmark, 1, 1)
    with pytest.raises(DataError, match="3-of-3: does not say what it cost"):
        load_costs([shard])


def test_the_section_adds_up(costs):
    section = cost_section(costs)
    once = seconds_of(costs, "doctor", "teach_basis", "teach_shard", "teach")
    assert f"- **e5**: {once:,.0f} s and 0.2 MB once" in section
    signals = seconds_of(costs, "align", "teach_rows_shard", "teach_rows")
    trainings = seconds_of(costs, "distil") / 4
    assert f"- **e5 to minilm**: {signals:,.0f} s and " in section
    assert f"4 trainings of {trainings:,.0f} s" in section
    shards = seconds_of(costs, "teach_shard")
    memory = max(cost.peak_memory for cost in costs if cost.job.rule == "teach_shard")
    assert cells(section, "teach_shard | e5") == [
        "teach_shard", "e5", "2", f"{shards:,.1f}", f"{shards / 2:,.1f}",
        f"{50 / shards:,.1f}", f"{memory:,.0f}", "0.2",
    ]  # fmt: skip
    methods = {cells(section, f"distil | {method}")[2] for method in ("pooled", "emo")}
    assert methods == {"2"}


def test_the_section_tells_sizes_beside_what_is_lost(costs, study):
    section = cost_section(costs)
    assert cells(section, "e5, all") == [
        "e5, all", "int8, 128 components", "50", "800", "0.2", "4,800", "300",
        "0.99543", "1.230", "-",
    ]  # fmt: skip
    assert cells(section, "e5 to minilm, all") == [
        "e5 to minilm, all", f"`{ROWS}`", "50", "800", "0.2", "4,800", "300", "4.9e-04"
    ]  # fmt: skip
    store = Path("results/e5/store/all/store.json")
    content = read_json(store)
    del content["record"]["tokens"]
    write_json(store, content)
    with pytest.raises(DataError, match=r"store\.json: does not say its 'tokens'"):
        cost_section(costs)


def test_a_study_without_rows_has_no_table_of_them(costs):
    left = [cost for cost in costs if cost.job.rule not in ("teach_rows", "teach_rows_shard")]
    assert "attention rows of" not in cost_section(left)


def test_online_a_training_shares_its_maps_alone(costs, study):
    """Neither the preparation of the teacher nor another training is counted."""
    config = made.config(seeds=(1, 2))
    config["teachers"]["e5"] = {"source": {"path": "models/x"}, "store": {"states": "online"}}
    training = next(
        cost for cost in costs if cost.job.rule == "distil" and cost.job.method == "emo"
    )
    told = training_costs(parse_study(config), training, costs)
    assert told["signal_seconds"] == seconds_of(costs, "align")


def test_what_a_training_is_told_to_have_cost(costs, study):
    by_method = {
        cost.job.method: training_costs(study, cost, costs)
        for cost in costs
        if cost.job.rule == "distil" and cost.job.seed == 2
    }
    emo, pooled = by_method["emo"], by_method["pooled"]
    training = next(
        cost for cost in costs if (cost.job.method, cost.job.seed) == ("emo", 2) and cost.job.texts
    )
    foreign = [
        dataclasses.replace(cost, job=dataclasses.replace(cost.job, **{name: "other"}))
        for cost in costs
        for name in ("teacher", "student", "texts", "request")
        if getattr(cost.job, name)
    ]
    assert training_costs(study, training, [*foreign, *costs]) == emo
    assert emo["teacher_seconds"] == seconds_of(costs, "teach_basis", "teach_shard", "teach")
    assert emo["signal_seconds"] == seconds_of(costs, "align", "teach_rows_shard", "teach_rows")
    assert pooled["signal_seconds"] == 0, "it asks for no map and no rows"
    assert emo["student_seconds"] == seconds_of(costs, "distil", method="emo", seed=2)
    assert emo["texts_per_second"] == pytest.approx(300 * 64 / emo["student_seconds"])
    assert (emo["store_bytes_per_text"], emo["store_bytes_per_token"]) == (4800, 300)
    assert emo["student_memory_mb"] > 1000
