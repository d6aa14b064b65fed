"""The stage ``emo report``: every file that a finished study is told by."""

from pathlib import Path

from emo.config import Study
from emo.jobs import study_jobs
from emo.report.contrasts import resampled_methods, study_contrasts, write_differences
from emo.report.costs import Cost, load_costs, stored_parts
from emo.report.document import write_report
from emo.report.figure import write_figure
from emo.report.ledger import write_costs
from emo.report.results import collect
from emo.report.runs import load_runs
from emo.report.speeds import load_speeds
from emo.report.summary import write_summary
from emo.runs import study_runs


def report_study(study: Study, out: Path) -> list[Cost]:
    """Write the tables, the report and the figure of a study.

    They are ``summary.csv``, ``differences.csv``, ``costs.csv``, ``report.md`` and
    ``figures/score_speed`` as PNG and SVG.

    Args:
        study: The study, all of whose runs are finished.
        out: Folder to write into.

    Returns:
        What its jobs cost.

    Raises:
        DataError: A score, prediction, speed or benchmark is missing or damaged.
    """
    chosen = study.study
    runs = load_runs([run.entry() for run in study_runs(study)])
    models = [*chosen.teachers, *chosen.students]
    speeds = load_speeds({model: Path(f"results/speed/{model}.json") for model in models})
    reports = {task: Path(f"resources/tasks/{task}/report.json") for task in chosen.tasks}
    costs = load_costs(study_jobs(study, stored_parts))
    results = collect(chosen, runs, speeds)
    resampled = {each.names: resampled_methods(each) for each in results}
    contrasts = study_contrasts(chosen.compare, resampled)
    write_summary(runs, out / "summary.csv")
    write_differences(contrasts, out / "differences.csv")
    write_costs(costs, out / "costs.csv")
    write_report(study, results, resampled, contrasts, reports, costs, out / "report.md")
    figure = out / "figures" / "score_speed"
    write_figure(study, runs, speeds, figure.with_suffix(".png"), figure.with_suffix(".svg"))
    return costs
