"""``scores.csv``: the main score of every run, and where it comes from."""

from collections.abc import Sequence

import pandas as pd

from emo.config import Study
from emo.evidence.methods import method_digest
from emo.evidence.trace import TracedRun
from emo.report.predictions import fidelity
from emo.report.runs import TEACHER


def scores_table(study: Study, traced: Sequence[TracedRun]) -> pd.DataFrame:
    """Return one line a run.

    ``fidelity`` is how nearly it answers as its teacher does, see
    :func:`emo.report.predictions.fidelity`. ``identity`` is the digest of the settings, inputs and
    code that the run was made with, ``commit`` that of the code; ``settings`` is the digest of the
    method's settings, as in ``methods.csv``, and empty for references.

    Raises:
        DataError: Predictions are missing or damaged, or of different test items.
    """
    teachers = {
        (each.run.teacher, each.run.student, each.run.task): each.run
        for each in traced
        if each.run.method == TEACHER
    }
    rows = []
    for each in traced:
        run, tracked = each.run, each.tracked
        method = study.methods.get(run.method)
        rows.append(
            {
                "teacher": run.teacher,
                "student": run.student,
                "task": run.task,
                "family": run.family,
                "method": run.method,
                "seed": run.seed,
                "metric": run.main,
                "value": run.score,
                "validation": run.validation,
                "fidelity": fidelity(run, teachers[run.teacher, run.student, run.task]),
                "mlflow_run": tracked.run_id,
                "commit": tracked.commit,
                "identity": tracked.identity,
                "settings": method_digest(method) if method else "",
            }
        )
    return pd.DataFrame(rows)
