"""Train a student from the teacher store: one method, one seed, one text set."""

import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from transformers import set_seed

from emo.assembly import DistilSettings, assemble
from emo.checkpoints import latest_sealed, trainer_state
from emo.distil_inputs import DistilInputs
from emo.encoder import device_name
from emo.history import History, read_history
from emo.methods.task import LabelledTask
from emo.outputs import atomic_directory, write_json
from emo.provenance import code_version, settings_digest
from emo.run_tags import RunKey
from emo.student import check_collapse, spread
from emo.task_head import TaskHead, save_task_head
from emo.tracking import RunGroup
from emo.trained_folder import save_trained
from emo.trained_once import input_digests, train_once
from emo.trainer import DistillationTrainer
from emo.tuning.objective import HEAD_FILE

logger = logging.getLogger(__name__)


def distil(
    settings: DistilSettings,
    inputs: DistilInputs,
    runs: Sequence[RunKey],
    checkpoints: Path,
    out: Path,
) -> None:
    """Train a student, or go on where an interrupted training of the same identity stopped.

    Args:
        settings: Method, budget and seed.
        inputs: Files to read.
        runs: Tracked runs that this training belongs to: one for each task on the text set.
        checkpoints: Folder for checkpoints, outside ``out``; emptied after a good end.
        out: Folder of the result: ``student``, ``history.jsonl`` and ``training.json``; on a
            labelled text set also the student's head, see :mod:`emo.task_head`.

    Raises:
        DataError: Inputs do not fit, or a loss is not finite.
        CheckError: The student collapsed and is not to be kept.
    """
    identity = settings_digest(
        {
            "settings": settings.model_dump(mode="json"),
            "inputs": _digests(inputs),
            "code": code_version("emo.distil"),
        }
    )

    def train(folder: Path) -> None:
        config = settings.model_dump(mode="json")
        with RunGroup(runs, identity, _parameters(settings), config) as group:
            _train(settings, inputs, group, folder, identity, out)

    weights = out / "student" / "model.safetensors"
    train_once(identity, checkpoints, out / "training.json", weights, train)


def _train(
    settings: DistilSettings,
    inputs: DistilInputs,
    group: RunGroup,
    folder: Path,
    identity: str,
    out: Path,
) -> None:
    began = time.monotonic()
    set_seed(settings.seed)
    training = settings.training
    made = assemble(settings, inputs, folder)
    student, tokenized = made.model.student, made.tokenized
    before = spread(student, tokenized)
    checkpoint = latest_sealed(folder)
    last_step = int(trainer_state(checkpoint)["global_step"]) if checkpoint else 0
    if checkpoint:
        logger.info("resuming from %s", checkpoint)
    history = History(folder / "history.jsonl", last_step)

    def record(entry: Mapping[str, Any]) -> None:
        history.append(entry)
        group.log_metrics(_flat(entry), step=entry["step"])

    trainer = DistillationTrainer(
        made.model, training, made.collator, len(tokenized), folder, settings.seed, record
    )
    if checkpoint and last_step >= training.steps:
        # Killed after the last step: the trainer would take one more.
        made.model.load_state_dict(load_file(checkpoint / "model.safetensors"))
    else:
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    task = made.model.method.task
    collapsed = False
    if not isinstance(task, LabelledTask):  # else a head answers, whatever the embeddings are
        after = spread(student, tokenized)
        collapsed = check_collapse(before, after, keep=training.collapsed == "keep")
    _log_left_out(read_history(folder / "history.jsonl"), training.batch_size)
    collator = made.collator
    if collator.pairs_dropped:
        logger.info(
            "pairs_dropped: %.1f%% of the pairs, whose teacher token the store left out",
            100 * collator.pairs_dropped / collator.pairs_read,
        )
    seconds = time.monotonic() - began
    read = (training.steps - last_step) * training.batch_size
    logger.info("trained in %.1f s: %.1f texts a second", seconds, read / seconds)
    with atomic_directory(out) as temporary:
        save_trained(student, inputs.student, temporary / "student")
        if isinstance(task, LabelledTask):
            save_task_head(TaskHead(task, settings.family, made.labels), temporary)
        shutil.copy(folder / "history.jsonl", temporary / "history.jsonl")
        write_json(
            temporary / "training.json",
            {
                "identity": identity,
                "steps": training.steps,
                "batch_size": training.batch_size,
                "texts": len(tokenized),
                "seconds": seconds,
                "resumed_from_step": last_step,
                "collapsed": collapsed,
                "device": device_name(student.device),
                "settings": settings.model_dump(mode="json"),
            },
        )


def _log_left_out(history: Sequence[Mapping[str, Any]], batch_size: int) -> None:
    """Say how many texts of a batch a term could not use, on average over the recorded steps."""
    reasons = dict.fromkeys(reason for record in history for reason in record["counts"])
    for reason in reasons:
        # A term on a schedule is not in every record.
        counts = [record["counts"][reason] for record in history if reason in record["counts"]]
        logger.info("%s: %.1f of %d texts a step", reason, sum(counts) / len(counts), batch_size)
        if min(counts) >= batch_size:
            logger.warning(
                "%s: every text of every recorded step, so that the term taught nothing; see "
                "docs/method.md for what a term needs",
                reason,
            )


def _digests(inputs: DistilInputs) -> dict[str, str | None]:
    return input_digests(
        {
            "student": inputs.student / "model.json",
            "texts": inputs.texts,
            "store": inputs.store,
            "alignment": inputs.alignment,
            "rows": inputs.rows,
            "teacher": inputs.teacher and inputs.teacher / "model.json",
            "row_alignment": inputs.row_alignment,
            "head": inputs.tuning and inputs.tuning.with_name(HEAD_FILE),
        }
    )


def _parameters(settings: DistilSettings) -> dict[str, Any]:
    """Return the flat parameters that are worth comparing between runs."""
    method = settings.method.model_dump(mode="json")
    training = settings.training.model_dump(mode="json")
    chosen = (
        "steps",
        "batch_size",
        "learning_rate",
        "head_learning_rate",
        "warmup",
        "weight_decay",
    )
    return {f"method.{name}": value for name, value in method.items()} | {
        f"training.{name}": training[name] for name in chosen
    }


def _flat(entry: Mapping[str, Any]) -> dict[str, float]:
    """Name a history record's numbers as the tracking server charts them."""
    flat = {
        "train/loss": entry["loss"],
        "train/learning_rate": entry["learning_rate"],
        "train/student_cosine": entry["student_cosine"],
    }
    flat |= {f"loss/{name}": value for name, value in entry["terms"].items()}
    flat |= {f"skipped/{name}": value for name, value in entry["counts"].items()}
    norms = entry.get("gradient_norms", {})
    return flat | {f"gradient_norm/{name}": value for name, value in norms.items()}
