"""The folder of evidence, from the files of a finished and tracked study."""

import re
import statistics
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from emo.config_search import SearchSettings
from emo.errors import DataError
from emo.evidence import write_evidence
from emo.evidence.forest import STYLES, draw_forest
from emo.evidence.methods import method_digest
from emo.evidence.page import tables_of
from emo.evidence.pair import collect_evidence
from emo.evidence.table import _seconds
from emo.jobs import search_jobs
from emo.outputs import read_json, write_json
from emo.report.contrasts import read_differences, write_differences

from ..report.conftest import training_record, write_benchmark
from .conftest import PAGE, loaded

DIFFERENCES = Path("results/differences.csv")
DOCS = Path("docs/evidence.md")
OUT = Path("docs/evidence/switches")
FILES = ("scores.csv", "differences.csv", "methods.csv", "table.md", "forest.svg")


@pytest.fixture
def written(study):
    write_evidence(study, DIFFERENCES, DOCS, OUT)
    return study


def rows(table):
    """Return the cells of the first table by the first of each row."""
    (lines,) = re.findall(r"\n\n(\| model .*?)\n\n", table, re.DOTALL)
    return {
        cells[0]: cells[1:]
        for line in lines.splitlines()
        for cells in [line.strip("| ").split(" | ")]
    }


def test_every_file_is_written_and_the_same_twice(written):
    before = {name: (OUT / name).read_bytes() for name in FILES}
    page = DOCS.read_bytes()
    write_evidence(written, DIFFERENCES, DOCS, OUT)
    assert {name: (OUT / name).read_bytes() for name in FILES} == before
    assert DOCS.read_bytes() == page
    assert before["forest.svg"].lstrip().startswith(b"<?xml")
    assert before["differences.csv"] == DIFFERENCES.read_bytes()


def test_scores_name_every_run(written):
    table = pd.read_csv(OUT / "scores.csv", keep_default_na=False)
    assert list(table.columns) == [
        "teacher", "student", "task", "family", "method", "seed", "metric", "value", "validation",
        "fidelity", "mlflow_run", "commit", "identity", "settings",
    ]  # fmt: skip
    for run, row in zip(loaded(written), table.itertuples(), strict=True):
        assert (row.task, row.method, row.seed) == (run.task, run.method, run.seed)
        assert (row.metric, row.value, row.validation) == (run.main, run.score, run.validation)
        trained = run.method in written.methods
        assert row.settings == (method_digest(written.methods[run.method]) if trained else "")
    assert (table.loc[table["method"] == "teacher", "fidelity"] == 1.0).all()
    assert table.loc[table["method"] != "teacher", "fidelity"].between(0, 1, "neither").all()
    assert table["mlflow_run"].str.fullmatch(r"[0-9a-f]{32}").all()
    assert table["mlflow_run"].is_unique


def test_methods_have_settings_budget_and_time(written):
    table = pd.read_csv(OUT / "methods.csv")
    assert table["method"].tolist() == ["pooled", "emo"]
    assert table["settings"].tolist() == ["-", "-"]
    assert (table["steps"] == 400).all()
    assert (table["batch_size"] == 64).all()
    assert (table["learning_rate"] == 1e-4).all()
    for _, row in table.iterrows():
        seconds = [benchmark_seconds(row["method"], seed) for seed in (1, 2)]
        assert row["training_seconds"] == pytest.approx(statistics.fmean(seconds))
        assert row["digest"] == method_digest(written.methods[row["method"]])


def benchmark_seconds(method, seed):
    path = Path(f"results/benchmarks/distil/e5/minilm/all/{method}/seed{seed}.tsv")
    return float(path.read_text().splitlines()[1].split("\t")[0])


def test_a_time_that_is_not_known_is_no_number(study):
    Path("results/benchmarks/distil/e5/minilm/all/emo/seed2.tsv").unlink()
    write_evidence(study, DIFFERENCES, DOCS, OUT)
    assert pd.read_csv(OUT / "methods.csv")["training_seconds"].isna().tolist() == [False, True]
    table = rows((OUT / "table.md").read_text())
    assert table["emo"][-1] == "-"
    assert table["pooled"][-1] != "-"


def test_the_time_of_a_part_of_a_training_is_not_that_of_the_training(study):
    path = Path("results/e5/minilm/trained/all/emo/seed2/training.json")
    write_json(path, read_json(path) | {"resumed_from_step": 100})
    write_evidence(study, DIFFERENCES, DOCS, OUT)
    assert pd.read_csv(OUT / "methods.csv")["training_seconds"].isna().tolist() == [False, True]


def test_the_table_shows_means_and_differences(written):
    text = (OUT / "table.md").read_text()
    table = rows(text)
    assert table["model"] == [
        "verdict", "classification", "pairs", "sts", "average", "- pooled", "95 % interval",
        "p (Holm)", "training (s)",
    ]  # fmt: skip
    assert list(table)[2:6] == ["e5 (teacher)", "minilm (undistilled)", "pooled", "emo"]
    by_seed = [
        statistics.fmean(
            run.score for run in loaded(written) if (run.method, run.family, run.seed) == key
        )
        for key in (("emo", "sts", 1), ("emo", "sts", 2))
    ]
    mean, deviation = statistics.fmean(by_seed), statistics.stdev(by_seed)
    assert table["emo"][3] == f"{100 * mean:.1f} ± {100 * deviation:.1f}"
    contrast = next(
        each for each in read_differences(DIFFERENCES)
        if (each.method, each.baseline, each.family) == ("emo", "pooled", "average")
    )  # fmt: skip
    difference = contrast.difference
    assert table["emo"][0] == contrast.verdict
    assert table["emo"][5:8] == [
        f"{100 * difference.mean:+.2f}",
        f"{100 * difference.low:+.2f} to {100 * difference.high:+.2f}",
        f"{contrast.p_holm:.4f}",
    ]
    assert table["pooled"][5:8] == ["-", "-", "-"]
    assert table["pooled"][0] == "-"
    assert "after Holm's correction over 1 methods" in text
    assert "400 steps of 64 texts, peak learning rate 0.0001 for every method. Scores of" in text
    assert "standard deviation over the seeds 1, 2." in text


@pytest.fixture
def searched(study):
    """The study after a search over learning rates."""
    search = SearchSettings(learning_rate=[1e-5, 1e-3])
    study = study.model_copy(update={"search": search})
    chosen = {"pooled": 1e-3, "emo": 1e-5}
    for method, rate in chosen.items():
        for number, job in enumerate(search_jobs(study, "e5", "minilm", "all", method)):
            write_benchmark(job.benchmark, seconds=10 + number, memory=1)
            if job.rule == "trial":
                write_json(Path(job.result), training_record(study, job) | {"resumed_from_step": 0})
            elif job.rule == "evaluate_trial":
                write_json(Path(job.result), {"texts": 4, "device": "cpu"})
            else:
                choice = {"learning_rate": rate, "validation": {"1e-05": 0.5, "0.001": 0.75}}
                write_json(Path(job.result), choice)
        for seed in (1, 2):
            path = Path(f"results/e5/minilm/trained/all/{method}/seed{seed}/training.json")
            record = read_json(path)
            record["settings"]["training"]["learning_rate"] = rate
            write_json(path, record)
    return study


def test_what_a_search_tried_chose_and_took_is_kept(searched):
    write_evidence(searched, DIFFERENCES, DOCS, OUT)
    table = pd.read_csv(OUT / "methods.csv")
    assert table["learning_rate"].tolist() == [1e-3, 1e-5]
    assert (table["search_validation"] == "1e-05: 0.5, 0.001: 0.75").all()
    # Two trials, each judged on four tasks, and the choice.
    assert (table["search_seconds"] == sum(10 + number for number in range(11))).all()
    text = (OUT / "table.md").read_text()
    cells = rows(text)
    assert cells["model"][-2:] == ["learning rate", "search (s)"]
    assert cells["emo"][-2:] == ["1e-05", "165"]
    assert cells["e5 (teacher)"][-3:] == ["-", "-", "-"]
    assert "chosen for each method and text set from 1e-05, 0.001 by the validation" in text


def test_a_training_with_another_rate_than_the_search_chose_is_refused(searched):
    path = Path("results/e5/minilm/search/all/emo/chosen.json")
    write_json(path, read_json(path) | {"learning_rate": 1e-3})
    with pytest.raises(DataError, match="emo was trained with other settings than the study has"):
        write_evidence(searched, DIFFERENCES, DOCS, OUT)


def test_the_table_is_put_into_the_page(written):
    page = DOCS.read_text()
    assert tables_of(page, "page")["switches"] == (OUT / "table.md").read_text()
    assert page.startswith("Prose.\n")
    assert page.endswith("\nMore prose.\n")


def test_without_a_place_in_the_page_nothing_is_written(study):
    DOCS.write_text(PAGE.replace("switches", "others"))
    with pytest.raises(DataError, match="no place for the table switches"):
        write_evidence(study, DIFFERENCES, DOCS, OUT)
    assert not OUT.exists()


def test_differences_of_other_scores_are_refused(study):
    contrasts = read_differences(DIFFERENCES)
    write_differences([*contrasts, replace(contrasts[0], method="other")], DIFFERENCES)
    with pytest.raises(DataError, match=r"average/other/pooled: .*, by the scores nan"):
        write_evidence(study, DIFFERENCES, DOCS, OUT)
    write_differences(contrasts[1:], DIFFERENCES)
    with pytest.raises(DataError, match=r"differences\.csv does not have the differences of this"):
        write_evidence(study, DIFFERENCES, DOCS, OUT)
    table = DIFFERENCES.read_text().replace("undistilled,0.", "undistilled,0.9")
    DIFFERENCES.write_text(table)
    with pytest.raises(DataError, match="make it again by `emo report`"):
        write_evidence(study, DIFFERENCES, DOCS, OUT)
    DIFFERENCES.write_text("teacher,student\ne5,minilm\n")
    with pytest.raises(DataError, match=r"differences\.csv: no table of differences"):
        write_evidence(study, DIFFERENCES, DOCS, OUT)
    assert not OUT.exists()


def test_a_missing_run_is_named(study):
    Path("results/e5/minilm/stsb/emo/seed2/scores.json").unlink()
    with pytest.raises(DataError, match=re.escape("stsb/emo/seed2/scores.json")):
        write_evidence(study, DIFFERENCES, DOCS, OUT)


def test_seconds_are_summed_over_text_sets():
    assert _seconds(pd.Series([1500.0, 250.4])) == "1,750"


@pytest.mark.parametrize("baseline", ["pooled", "undistilled"])
def test_the_forest_has_each_method_with_its_interval(study, baseline):
    pairs = collect_evidence(study, loaded(study), DIFFERENCES)
    figure = draw_forest(pairs * 2, baseline)
    assert len(figure.axes) == 2
    panel = figure.axes[1]
    expected = pairs[0].against(baseline)
    means = [contrast.difference.mean for contrast in expected.values()]
    assert means == sorted(means, reverse=True)
    assert [label.get_text() for label in panel.get_yticklabels()] == [*expected]
    _, *drawn = panel.lines
    for row, contrast in enumerate(expected.values()):
        bar, mark = drawn[2 * row : 2 * row + 2]
        assert list(bar.get_xdata()) == pytest.approx(
            [100 * contrast.difference.low, 100 * contrast.difference.high]
        )
        assert list(mark.get_xdata()) == pytest.approx([100 * contrast.difference.mean])
        assert (mark.get_color(), mark.get_marker()) == STYLES[contrast.verdict]
        assert set(bar.get_ydata()) == set(mark.get_ydata()) == {row}
