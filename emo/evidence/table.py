"""``table.md``: what a study found, to be shown in a page."""

from collections.abc import Sequence

import pandas as pd

from emo.config import Study
from emo.evidence.pair import PairEvidence
from emo.report.bootstrap import ALPHA, RESAMPLES
from emo.report.differences import interval, points
from emo.report.reading import over_seeds_words, who_answers, who_collapsed
from emo.report.results import model_label
from emo.report.runs import TEACHER, UNDISTILLED
from emo.report.table import markdown_table, percent


def evidence_table(study: Study, pairs: Sequence[PairEvidence], methods: pd.DataFrame) -> str:
    """Return the tables of a study in Markdown.

    Args:
        study: The study.
        pairs: Its results.
        methods: See :func:`emo.evidence.methods.methods_table`.
    """
    parts = [_how_to_read(study), *who_answers(study), *who_collapsed(study)]
    for pair in pairs:
        mine = (methods["teacher"] == pair.teacher) & (methods["student"] == pair.student)
        parts += [f"**{pair.teacher} to {pair.student}**", _scores(study, pair, methods[mine])]
    settings = methods.drop_duplicates("method")[["method", "form", "settings"]]
    parts += [
        "Settings that differ from the defaults of the form:",
        markdown_table([*settings.columns], settings.to_numpy().tolist(), words=3),
    ]
    return "\n\n".join(parts) + "\n"


def _how_to_read(study: Study) -> str:
    chosen, training = study.study, study.training
    compared = len(set(chosen.methods) - {chosen.compare.baseline})
    rate, search = f"{training.learning_rate:g} for every method", ""
    if study.search is not None:
        tried = ", ".join(f"{each:g}" for each in study.search.learning_rate)
        rate = f"chosen for each method and text set from {tried} by the validation splits"
        search = ", search seconds those of all trials and their evaluations"
    return (
        f"Main metrics times 100 on {', '.join(chosen.tasks)}; "
        f"{training.steps} steps of {training.batch_size} texts, peak learning rate {rate}. "
        f"{over_seeds_words(study)} "
        f"Differences are those of the average of families from `{chosen.compare.baseline}`, with "
        f"the 95 % interval of a paired bootstrap ({RESAMPLES} resamples of test items and seeds), "
        f"p after Holm's correction over {compared} methods, and the verdict of that p below "
        f"{ALPHA}. Training seconds are those of one seed{search}; `-` where not all are known."
    )


def _scores(study: Study, pair: PairEvidence, methods: pd.DataFrame) -> str:
    baseline = study.study.compare.baseline
    contrasts = pair.against(baseline)
    header = ["model", "verdict", *pair.families, "average", f"- {baseline}", "95 % interval"]
    header += ["p (Holm)", "training (s)"]
    if study.search is not None:
        header += ["learning rate", "search (s)"]
    rows = []
    for name in (TEACHER, UNDISTILLED, baseline, *contrasts):
        method, contrast = pair.methods[name], contrasts.get(name)
        mine = methods[methods["method"] == name]
        row = [
            model_label(pair.teacher, pair.student, name),
            contrast.verdict if contrast else "-",
            *(percent(method.family(family)) for family in pair.families),
            percent(method.average()),
            points(contrast.difference.mean) if contrast else "-",
            interval(contrast.difference) if contrast else "-",
            f"{contrast.p_holm:.4f}" if contrast else "-",
            _seconds(mine["training_seconds"]),
        ]
        if study.search is not None:
            rates = ", ".join(f"{rate:g}" for rate in mine["learning_rate"])
            row += [rates or "-", _seconds(mine["search_seconds"])]
        rows.append(row)
    return markdown_table(header, rows, words=2)


def _seconds(of_texts: pd.Series) -> str:
    """Return the seconds of all text sets, ``-`` where there are none or some are not known."""
    return "-" if of_texts.empty or of_texts.isna().any() else f"{of_texts.sum():,.0f}"
