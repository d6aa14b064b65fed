"""The report stage on the files of a finished study, at the places of the contract."""

import re
from pathlib import Path

import pandas as pd
import pytest

from emo.errors import DataError
from emo.report.study import report_study
from emo.runs import study_runs
from emo.tracked_costs import report_and_track


def test_summary_has_the_columns_of_the_contract_and_one_main_row_a_run(study):
    report_study(study, Path("results"))
    table = pd.read_csv("results/summary.csv")
    assert list(table.columns) == [
        "teacher", "student", "task", "family", "method", "seed", "metric", "score", "main",
        "validation",
    ]  # fmt: skip
    run = ["teacher", "student", "task", "method", "seed"]
    assert len(table[run].drop_duplicates()) == len(study_runs(study))
    assert (table.groupby(run)["main"].sum() == 1).all()
    assert set(table["method"]) == {"teacher", "undistilled", "pooled", "emo"}


def test_differences_are_those_of_the_report(study):
    report_study(study, Path("results"))
    table = pd.read_csv("results/differences.csv")
    assert set(table["family"]) == {"average", "classification", "pairs", "sts"}
    (row,) = table[(table["family"] == "average") & (table["baseline"] == "pooled")].itertuples()
    cells = [
        "**emo**", row.verdict, f"{100 * row.difference:+.2f}",
        f"{100 * row.low:+.2f} to {100 * row.high:+.2f}", f"{row.p:.4f}", f"{row.p_holm:.4f}",
    ]  # fmt: skip
    assert f"| {' | '.join(cells)} |" in Path("results/report.md").read_text()
    assert row.seeds == "1 2"


def test_costs_are_written_and_the_same_from_the_same_files(study):
    report_study(study, Path("results"))
    table = Path("results/costs.csv").read_bytes()
    report = Path("results/report.md").read_bytes()
    assert b"## What it cost" in report
    report_study(study, Path("results"))
    assert Path("results/costs.csv").read_bytes() == table
    assert Path("results/report.md").read_bytes() == report


def test_report_and_figure_are_written(study):
    report_study(study, Path("results"))
    assert "teacher" in Path("results/report.md").read_text()
    assert Path("results/figures/score_speed.png").stat().st_size > 1000
    assert Path("results/figures/score_speed.svg").read_text().lstrip().startswith("<?xml")


def test_a_tracking_store_that_cannot_be_used_takes_no_report(study, monkeypatch, caplog):
    """Else Snakemake would remove what the failed job had written, and the report before it."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    report_and_track(study, Path("results"))
    assert "## What it cost" in Path("results/report.md").read_text()
    told = [record.message for record in caplog.records if record.levelname == "WARNING"]
    (warning,) = (message for message in told if "MLflow does not have its costs" in message)
    assert "http://127.0.0.1:9 cannot be used" in warning


@pytest.mark.parametrize(
    "path",
    [
        "results/e5/minilm/stsb/emo/seed2/scores.json",
        "results/reference/e5/stsb/scores.json",
        "results/speed/minilm.json",
        "results/e5/store/all/store.json",
        "results/e5/minilm/alignment/all/mined.original.parquet",
    ],
)
def test_a_missing_file_is_named(study, path):
    """A table of what happens to be there would look finished."""
    Path(path).unlink()
    with pytest.raises(DataError, match=re.escape(path)):
        report_study(study, Path("out"))
    assert not Path("out/report.md").exists()
