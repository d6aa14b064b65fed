"""The stage ``emo evidence``: what a finished study found, kept in a folder with the code."""

from pathlib import Path

from emo.config import Study
from emo.evidence.forest import write_forest
from emo.evidence.methods import methods_table
from emo.evidence.page import put_table, read_page, update_page
from emo.evidence.pair import collect_evidence
from emo.evidence.scores import scores_table
from emo.evidence.table import evidence_table
from emo.evidence.trace import trace_runs
from emo.outputs import atomic_file
from emo.report.contrasts import write_differences
from emo.report.csv_table import write_csv
from emo.report.runs import load_runs
from emo.runs import study_runs


def write_evidence(study: Study, differences: Path, page: Path, out: Path) -> None:
    """Write the tables and the figure of a study, and put its table into a page.

    The folder holds ``scores.csv``, ``differences.csv``, ``methods.csv``, ``table.md`` and
    ``forest.svg``; its name is that of the table in the page. Nothing is written before all of it
    is known.

    Args:
        study: The study, all of whose runs are finished and tracked.
        differences: Its ``differences.csv``, see :func:`emo.report.study.report_study`.
        page: A Markdown page with a place for the table, see :mod:`emo.evidence.page`.
        out: Folder to write into.

    Raises:
        ConfigError: The tracking store cannot be reached.
        DataError: A file is missing, damaged or of another study, a run is not tracked, or the page
            has no place for the table.
    """
    name = out.name
    put_table(read_page(page), name, "", str(page))
    runs = load_runs([run.entry() for run in study_runs(study)])
    pairs = collect_evidence(study, runs, differences)
    traced = trace_runs(study, runs)
    methods = methods_table(study, runs)
    table = evidence_table(study, pairs, methods)
    write_csv(scores_table(study, traced), out / "scores.csv")
    write_csv(methods, out / "methods.csv")
    write_differences([each for pair in pairs for each in pair.contrasts], out / "differences.csv")
    write_forest(pairs, study.study.compare.baseline, out / "forest.svg")
    with atomic_file(out / "table.md") as temporary:
        temporary.write_text(table, encoding="utf-8")
    update_page(page, name, table)
