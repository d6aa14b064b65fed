"""Evaluate a model and add the scores to its tracked runs."""

from collections.abc import Sequence
from pathlib import Path

from emo.config_methods import Family
from emo.evaluate import evaluate
from emo.outputs import read_json
from emo.provenance import code_version, settings_digest
from emo.run_tags import RunKey
from emo.tracking import RunGroup, tracking_after


def evaluate_and_track(
    model: Path,
    task_folder: Path,
    family: Family,
    out: Path,
    runs: Sequence[RunKey],
    head: Path | None = None,
) -> None:
    """Score a model on a task, write the files, then show them in the runs they belong to.

    A trained model's run goes on under the identity of its training; a reference has none, so its
    run is identified by the model, how texts are put to it, the task and the code that judges.
    The scores are whole without MLflow: a store that cannot be used is warned of.

    Args:
        model: SentenceTransformer folder.
        task_folder: Prepared task.
        family: Its family.
        out: Folder of the results.
        runs: Tracked runs; none leaves the evaluation untracked.
        head: The record of the model's own head, where that answers.
    """
    evaluate(model, task_folder, task_folder.name, family, out, head)
    if not runs:
        return
    scores = read_json(out / "scores.json")
    training = model.resolve().parent / "training.json"
    if training.is_file():
        record = read_json(training)
        identity, config, params = record["identity"], record["settings"], {}
    else:
        config = {"model": read_json(model / "model.json"), "task": task_folder.name}
        config["judged_by"] = scores["judged_by"]
        identity = settings_digest(config | {"code": code_version("emo.evaluate")})
        told = ("format", "prompt", "max_length")
        params = {f"model.{name}": config["model"]["settings"][name] for name in told}
        # Settings may leave it to the model's folder.
        params["model.pooling"] = scores["model"]["pooling"]
    shown = scores["metrics"] | {f"validation_{scores['main']}": scores["validation"]}
    with (
        tracking_after("the scores are written, but MLflow does not have them"),
        RunGroup(runs, identity, params, config) as group,
    ):
        for key in runs:
            group.log_scores(key, shown)
