"""Evidence of the tiny study is kept on request, and what was kept survives a failure."""

import csv

import pytest

pytestmark = pytest.mark.workflow

PAGE = "<!-- table: tiny -->\n<!-- end -->\n"
TARGET = "docs/evidence/tiny/table.md"


def test_evidence_is_made_from_cached_results(study):
    (study.path / "docs").mkdir()
    page = study.path / "docs" / "evidence.md"
    page.write_text(PAGE)
    outcome = study.snakemake(TARGET)
    assert outcome.code == 0, outcome.output
    assert outcome.jobs == {"evidence": 1}
    table = (study.path / TARGET).read_text()
    assert table in page.read_text()
    assert "tiny-teacher to tiny-student" in table
    folder = (study.path / TARGET).parent
    with (folder / "scores.csv").open(newline="") as stream:
        scores = list(csv.DictReader(stream))
    assert len(scores) == 15
    assert all(len(row["mlflow_run"]) == 32 for row in scores)
    assert study.plan(TARGET).nothing_to_do

    # What is there stays when a later try fails.
    (study.path / "results" / "mlflow.db").unlink()
    outcome = study.snakemake(TARGET, "--forcerun", "evidence")
    assert outcome.code != 0
    assert "has no run in MLflow" in outcome.output
    assert (study.path / TARGET).read_text() == table
    assert (folder / "forest.svg").is_file()
