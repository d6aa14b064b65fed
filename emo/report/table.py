"""The table of scores of one teacher and student, in Markdown."""

from collections.abc import Sequence

from emo.config_training import TrainingSettings
from emo.report.averages import Spread
from emo.report.results import PairResults
from emo.report.runs import TEACHER

METRIC_NAMES = {
    "macro_f1": "macro-F1",
    "average_precision": "average precision",
    "spearman": "Spearman",
}


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """Return a Markdown table whose first columns are words and whose others are numbers.

    >>> print(markdown_table(["model", "score"], [["emo", "70.1"]]))
    | model | score |
    | --- | ---: |
    | emo | 70.1 |
    """
    rule = [*["---"] * words, *["---:"] * (len(header) - words)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def score_table(results: PairResults, training: TrainingSettings) -> str:
    """Return the scores of every model, with what it costs to make and to use it."""
    teacher_average = results.methods[TEACHER].average().mean
    header = [
        "model",
        *(f"{task} ({_metric(results, task)})" for task in results.tasks),
        "average of families",
        "of the teacher's (%)",
        "parameters (M)",
        "texts/s",
        "speed-up",
        "steps x batch",
    ]
    rows = []
    for name, method in results.methods.items():
        average = method.average()
        trained = name in results.distilled
        rows.append(
            [
                results.label(name),
                *(percent(method.task(task)) for task in results.tasks),
                percent(average),
                f"{100 * average.mean / teacher_average:.1f}",
                f"{method.parameters / 1e6:.1f}",
                f"{results.speed(name).texts_per_second:.0f}",
                _speed_up(results, name),
                f"{training.steps} x {training.batch_size}" if trained else "-",
            ]
        )
    return markdown_table(header, rows)


def _metric(results: PairResults, task: str) -> str:
    run = next(iter(results.methods[TEACHER].runs[task].values()))
    return METRIC_NAMES[run.main]


def percent(spread: Spread) -> str:
    """Return a score and its deviation times 100.

    >>> percent(Spread(0.7512, 0.0049)), percent(Spread(0.7512, None))
    ('75.1 ± 0.5', '75.1')
    """
    deviation = "" if spread.deviation is None else f" ± {100 * spread.deviation:.1f}"
    return f"{100 * spread.mean:.1f}{deviation}"


def _speed_up(results: PairResults, method: str) -> str:
    if method == TEACHER:
        return "1.0"
    return "-" if results.speed_up is None else f"{results.speed_up:.1f}"
