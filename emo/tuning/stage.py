"""Tune a teacher on the labelled rows of one task, and leave it as a prepared folder.

The folder of the result holds ``model``, laid out as any prepared model; ``tuning.json``, which
says how it came about; ``history.jsonl``, losses and validation scores by step; and
``head.safetensors`` where a head was trained. The tuned model embeds texts, and the head is no part
of it.
"""

import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from transformers import set_seed

from emo.checkpoints import is_whole, latest_sealed, trainer_state
from emo.config_tuning import FullTuning, LoraTuning
from emo.encoder import Encoder, device_name, load_encoder
from emo.history import History, read_history
from emo.outputs import atomic_directory, read_json, write_json
from emo.provenance import code_version, settings_digest
from emo.run_tags import RunKey
from emo.supervised_rows import SupervisedRows, read_supervised_rows
from emo.tracking import RunGroup
from emo.trained_folder import save_trained
from emo.trained_once import input_digests, train_once
from emo.tuning.adapter import add_adapter, merge_adapter
from emo.tuning.examples import Examples
from emo.tuning.objective import HEAD_FILE, build_objective
from emo.tuning.trainer import Record, Tuning, TuningTrainer
from emo.weighted_metrics import MAIN_METRICS

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TuningInputs:
    """Folders that a tuning reads.

    Attributes:
        teacher: The prepared teacher.
        task: The prepared task whose labelled rows it is tuned on.
        unseen: Every prepared task whose test texts must stay unseen.
    """

    teacher: Path
    task: Path
    unseen: tuple[Path, ...]


def tune(
    settings: LoraTuning | FullTuning,
    inputs: TuningInputs,
    runs: Sequence[RunKey],
    checkpoints: Path,
    out: Path,
) -> None:
    """Tune a teacher, or go on where an interrupted tuning of the same identity stopped.

    Args:
        settings: Kind, budget and seed.
        inputs: Folders to read.
        runs: Tracked runs that this tuning belongs to.
        checkpoints: Folder for checkpoints, outside ``out``; emptied after a good end.
        out: Folder of the result.

    Raises:
        CheckError: The teacher collapsed, or the adapter cannot be merged truly.
        ConfigError: The teacher has no layers of the names asked for.
        DataError: The rows cannot be tuned on, or a loss is not finite.
    """
    identity = settings_digest(
        {
            "settings": settings.model_dump(mode="json"),
            "inputs": _digests(inputs),
            "code": code_version("emo.tuning.stage"),
        }
    )

    def train(folder: Path) -> None:
        config = settings.model_dump(mode="json")
        params = {f"tuning.{name}": value for name, value in config.items()}
        with RunGroup(runs, identity, params, config | {"task": inputs.task.name}) as group:
            _train(settings, inputs, group, folder, identity, out)

    weights = out / "model" / "model.safetensors"
    train_once(identity, checkpoints, out / "tuning.json", weights, train)


def _train(
    settings: LoraTuning | FullTuning,
    inputs: TuningInputs,
    group: RunGroup,
    folder: Path,
    identity: str,
    out: Path,
) -> None:
    began = time.monotonic()
    set_seed(settings.seed)
    rows = read_supervised_rows(inputs.task, inputs.unseen)
    metric, _ = MAIN_METRICS[rows.family]
    encoder = load_encoder(inputs.teacher)
    adapted = add_adapter(encoder, settings) if isinstance(settings, LoraTuning) else None
    checkpoint = _resumable(folder)
    last_step = int(trainer_state(checkpoint)["global_step"]) if checkpoint else -1
    history = History(folder / "history.jsonl", last_step)

    def record(entry: Mapping[str, Any]) -> None:
        history.append(entry)
        group.log_metrics(_flat(entry, metric), step=entry["step"])

    trainer = _trainer(settings, rows, encoder, folder, record)
    trained_weights = sum(weight.numel() for weight in trainer.tuning.trained().values())
    if checkpoint is None and not trainer.tuning.objective.reads_head:
        record({"step": 0, "epoch": 0, "validation": trainer.score()})
    _run(trainer, checkpoint)
    adapter = None
    if adapted is not None:
        adapter = asdict(merge_adapter(encoder, adapted, folder / "adapter"))
    validations = [entry for entry in read_history(folder / "history.jsonl") if "epoch" in entry]
    _log_best(validations, metric)
    made = {
        "identity": identity,
        "task": inputs.task.name,
        **_about(rows),
        "metric": metric,
        "validations": validations,
        "best_epoch": _best(validations)["epoch"],
        "trained_weights": trained_weights,
        "adapter": adapter,
        "seconds": time.monotonic() - began,
        "resumed_from_step": max(last_step, 0),
        "device": device_name(trainer.args.device),
        "settings": settings.model_dump(mode="json"),
    }
    _save(trainer.tuning, inputs, made, folder / "history.jsonl", out)


def _trainer(
    settings: LoraTuning | FullTuning,
    rows: SupervisedRows,
    encoder: Encoder,
    folder: Path,
    record: Record,
) -> TuningTrainer:
    tokenizer, reading = encoder.tokenizer(), settings.pairs
    objective = build_objective(rows.family, reading, encoder.vector_width, len(rows.labels))
    return TuningTrainer(
        Tuning(encoder, objective.to(encoder.device)),
        settings,
        rows.family,
        Examples(rows.train, tokenizer, reading == "joint"),
        Examples(rows.validation, tokenizer, reading == "joint"),
        folder,
        record,
    )


def _run(trainer: TuningTrainer, checkpoint: Path | None) -> None:
    """Train to the end, and take the weights of the best epoch."""
    if checkpoint is not None:
        logger.info("resuming from %s", checkpoint)
        state = trainer_state(checkpoint)
        if state["global_step"] >= state["max_steps"]:
            # Killed after the last step: the trainer would take one more.
            trainer.load(_best_checkpoint(checkpoint))
            return
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)


def _resumable(folder: Path) -> Path | None:
    """Return the newest whole checkpoint whose best epoch so far is whole, too."""
    while (checkpoint := latest_sealed(folder)) is not None:
        best = _best_checkpoint(checkpoint)
        if is_whole(best):
            return checkpoint
        logger.warning("skipping %s: %s, its best epoch, is damaged", checkpoint, best)
        shutil.rmtree(checkpoint)
    return None


def _best_checkpoint(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"checkpoint-{trainer_state(checkpoint)['best_global_step']}")


def _about(rows: SupervisedRows) -> dict[str, Any]:
    splits = {"train": rows.train, "validation": rows.validation}
    return {
        "family": rows.family,
        "labels": rows.labels,
        "rows": {name: len(split.texts) for name, split in splits.items()},
        "left_out": {name: split.left_out for name, split in splits.items()},
    }


def _save(
    tuning: Tuning, inputs: TuningInputs, made: Mapping[str, Any], history: Path, out: Path
) -> None:
    """Write the result whole; ``model.json`` tells it from the teacher that it was."""
    base = read_json(inputs.teacher / "model.json")
    told = {
        "base_weights_sha256": base["weights_sha256"],
        "task": made["task"],
        "identity": made["identity"],
        "settings": made["settings"],
    }
    head = {name: value.cpu() for name, value in tuning.objective.state_dict().items()}
    with atomic_directory(out) as temporary:
        save_trained(tuning.encoder, inputs.teacher, temporary / "model", tuned=told)
        shutil.copy(history, temporary / "history.jsonl")
        if head:
            save_file(head, temporary / HEAD_FILE)
        write_json(temporary / "tuning.json", made)


def _best(validations: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the best epoch, the first of equals, as the trainer chose it."""
    epochs = [entry for entry in validations if entry["epoch"] > 0]
    return max(epochs, key=lambda entry: float(entry["validation"]))


def _log_best(validations: Sequence[Mapping[str, Any]], metric: str) -> None:
    best, first = _best(validations), validations[0]
    logger.info("best by validation: epoch %d, %s %.4f", best["epoch"], metric, best["validation"])
    if first["epoch"] == 0 and best["validation"] <= first["validation"]:
        logger.warning(
            "no epoch beats the teacher as it was, %s %.4f: tuning it gains nothing on these rows; "
            "change `tuning.learning_rate` or `tuning.epochs`, or leave `tuning` out",
            metric,
            first["validation"],
        )


def _digests(inputs: TuningInputs) -> dict[str, str | None]:
    files = {
        "teacher": inputs.teacher / "model.json",
        "task": inputs.task / "report.json",
        "train": inputs.task / "train.parquet",
        "validation": inputs.task / "validation.parquet",
    }
    tests = {f"unseen {folder.name}": folder / "test.parquet" for folder in inputs.unseen}
    return input_digests(files | tests)


def _flat(entry: Mapping[str, Any], metric: str) -> dict[str, float]:
    """Name a record's numbers as the tracking server charts them."""
    names = {
        "loss": "train/loss",
        "learning_rate": "train/learning_rate",
        "validation": f"validation/{metric}",
    }
    return {shown: entry[name] for name, shown in names.items() if name in entry}
