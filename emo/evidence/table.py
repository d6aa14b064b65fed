"""``table.md``: what a study found, to be shown in a page."""

from collections.abc import Mapping, Sequence

import pandas as pd

from emo.config import Study
from emo.evidence.pair import PairEvidence
from emo.report.bootstrap import ALPHA, RESAMPLES
from emo.report.differences import interval, points
from emo.report.runs import TEACHER, UNDISTILLED
from emo.report.table import markdown_table, percent


def evidence_table(study: Study, pairs: Sequence[PairEvidence], methods: pd.DataFrame) -> str:
    """Return the tables of a study in Markdown.

    Args:
        study: The study.
        pairs: Its results.
        methods: See :func:`emo.evidence.methods.methods_table`.
    """
    parts = [_how_to_read(study)]
    for pair in pairs:
        mine = (methods["teacher"] == pair.teacher) & (methods["student"] == pair.student)
        seconds = dict(zip(methods["method"][mine], methods["training_seconds"][mine], strict=True))
        parts += [f"**{pair.teacher} to {pair.student}**", _scores(study, pair, seconds)]
    settings = methods.drop_duplicates("method")[["method", "form", "settings"]]
    parts += [
        "Settings that differ from the defaults of the form:",
        markdown_table([*settings.columns], settings.to_numpy().tolist(), words=3),
    ]
    return "\n\n".join(parts) + "\n"


def _how_to_read(study: Study) -> str:
    chosen, training = study.study, study.training
    seeds = ", ".join(map(str, sorted(chosen.seeds)))
    spread = "mean ± standard deviation over the seeds" if len(chosen.seeds) > 1 else "of the seed"
    return (
        f"Main metrics times 100 on {', '.join(chosen.tasks)}, {spread} {seeds}; "
        f"{training.steps} steps of {training.batch_size} texts at a peak rate of "
        f"{training.learning_rate:g} for every method. Differences are those of the average of "
        f"families from `{chosen.compare.baseline}`, with the 95 % interval of a paired bootstrap "
        f"({RESAMPLES} resamples of test items and seeds), p after Holm's correction over the "
        f"{len(chosen.methods) - 1} methods compared, and the verdict of that p below {ALPHA}. "
        "Seconds are those of the trainings of one seed."
    )


def _scores(study: Study, pair: PairEvidence, seconds: Mapping[str, float]) -> str:
    baseline = study.study.compare.baseline
    contrasts = pair.against(baseline)
    header = ["model", "verdict", *pair.families, "average", f"- {baseline}", "95 % interval"]
    header += ["p (Holm)", "training (s)"]
    rows = []
    for name in (TEACHER, UNDISTILLED, baseline, *contrasts):
        method, contrast = pair.methods[name], contrasts.get(name)
        time = seconds.get(name)
        rows.append(
            [
                {
                    TEACHER: f"{pair.teacher} (teacher)",
                    UNDISTILLED: f"{pair.student} (undistilled)",
                }.get(name, name),
                contrast.verdict if contrast else "-",
                *(percent(method.family(family)) for family in pair.families),
                percent(method.average()),
                points(contrast.difference.mean) if contrast else "-",
                interval(contrast.difference) if contrast else "-",
                f"{contrast.p_holm:.4f}" if contrast else "-",
                "-" if time is None or pd.isna(time) else f"{time:,.0f}",
            ]
        )
    return markdown_table(header, rows, words=2)
