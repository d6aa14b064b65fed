"""Train a student from the teacher store: one method, one seed, one text set."""

import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict
from safetensors.torch import load_file
from transformers import set_seed

from emo.alignment import paper_text, read_alignment
from emo.batches import Collator, RowSignals, TokenSignals
from emo.checkpoints import latest_sealed
from emo.config import EmoPaperSettings, EmoSettings, MethodSettings, TrainingSettings
from emo.encoder import Encoder, load_encoder
from emo.errors import ConfigError, DataError
from emo.history import History
from emo.methods import Method, build_method
from emo.outputs import atomic_directory, exclusive, read_json, sha256_file, write_json
from emo.provenance import code_version, settings_digest
from emo.run_tags import RunKey
from emo.store import Store
from emo.student import add_fitted_head, check_collapse, save_student, set_dropout, spread
from emo.texts import load_texts
from emo.tokens import TokenizedText
from emo.tracking import RunGroup
from emo.trainer import Distillation, DistillationTrainer

logger = logging.getLogger(__name__)


class DistilSettings(BaseModel):
    """What one training depends on besides its input files."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: MethodSettings
    training: TrainingSettings
    layers: int
    """Student layers whose attention is compared."""
    seed: int


@dataclass(frozen=True, slots=True)
class DistilInputs:
    """Files that a training reads.

    Attributes:
        student: The prepared, untrained student.
        texts: The text set.
        store: The teacher's signals.
        alignment: The token map, for methods with a transport term.
        rows: The attention rows, for methods with an attention term.
    """

    student: Path
    texts: Path
    store: Path
    alignment: Path | None
    rows: Path | None


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
        out: Folder of the result: ``student``, ``history.jsonl`` and ``training.json``.

    Raises:
        DataError: Inputs do not fit, or a loss is not finite.
        CheckError: The student collapsed.
    """
    identity = settings_digest(
        {
            "settings": settings.model_dump(mode="json"),
            "inputs": _digests(inputs),
            "code": code_version("emo.distil"),
        }
    )
    with exclusive(checkpoints / "training", f"the training of {out}"):
        if _finished(out) == identity:
            logger.info("%s: already finished by another process", out)
            shutil.rmtree(checkpoints / identity, ignore_errors=True)
            return
        config = settings.model_dump(mode="json")
        with RunGroup(runs, identity, _parameters(settings), config) as group:
            _train(settings, inputs, group, checkpoints / identity, identity, out)
        shutil.rmtree(checkpoints / identity)


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
    table = load_texts(inputs.texts)
    texts, keys = list(table["text"]), list(table["key"])
    training = settings.training
    if len(texts) < training.batch_size:
        raise ConfigError(
            f"{inputs.texts}: {len(texts)} texts do not fill one batch; lower "
            f"`training.batch_size` (now {training.batch_size}) or give more texts"
        )
    student = load_encoder(inputs.student)
    tokenized = student.tokenizer()(texts)
    signals = Store(inputs.store)
    if not isinstance(settings.method, EmoPaperSettings):
        add_fitted_head(student, tokenized, keys, signals)
        set_dropout(student, settings.method.dropout)
    before = spread(student, tokenized)
    method = build_method(
        settings.method,
        layers=settings.layers,
        student_width=student.width,
        vector_centre=torch.from_numpy(signals["vector_centre"]),
        state_centre=torch.from_numpy(signals["state_centre"]),
    )
    collator = _collator(settings, inputs, method, student, texts, keys, tokenized, signals)
    checkpoint = latest_sealed(folder)
    last_step = (
        int(read_json(checkpoint / "trainer_state.json")["global_step"]) if checkpoint else 0
    )
    if checkpoint:
        logger.info("resuming from %s", checkpoint)
    history = History(folder / "history.jsonl", last_step)

    def record(entry: Mapping[str, Any]) -> None:
        history.append(entry)
        group.log_metrics(_flat(entry), step=entry["step"])

    model = Distillation(student, method)
    trainer = DistillationTrainer(
        model, training, collator, len(texts), folder, settings.seed, record
    )
    if checkpoint and last_step >= training.steps:
        # Killed after the last step: the trainer would take one more.
        model.load_state_dict(load_file(checkpoint / "model.safetensors"))
    else:
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    check_collapse(before, spread(student, tokenized))
    with atomic_directory(out) as temporary:
        save_student(student, inputs.student, temporary / "student")
        shutil.copy(folder / "history.jsonl", temporary / "history.jsonl")
        write_json(
            temporary / "training.json",
            {
                "identity": identity,
                "steps": training.steps,
                "batch_size": training.batch_size,
                "texts": len(texts),
                "seconds": time.monotonic() - began,
                "resumed_from_step": last_step,
                "device": str(student.device),
                "settings": settings.model_dump(mode="json"),
            },
        )


def _collator(
    settings: DistilSettings,
    inputs: DistilInputs,
    method: Method,
    student: Encoder,
    texts: Sequence[str],
    keys: Sequence[str],
    tokenized: Sequence[TokenizedText],
    signals: Store,
) -> Collator:
    paper = isinstance(settings.method, EmoPaperSettings)
    tokens, rows = None, None
    if "tokens" in method.signals:
        importance = "importance_all" if paper else "importance"
        alignment = read_alignment(_given(inputs.alignment, "an alignment", "--alignment"))
        tokens = TokenSignals(importance, alignment)
    if "rows" in method.signals:
        read = tokenized
        if paper:
            tokenizer = student.tokenizer()
            read = tokenizer([paper_text(text, tokenizer) for text in texts])
        store = Store(_given(inputs.rows, "attention rows", "--rows"))
        _check_rows(store, settings)
        rows = RowSignals(store, settings.layers, read)
    return Collator(tokenized, keys, student.pad_id, signals, tokens, rows)


def _check_rows(store: Store, settings: DistilSettings) -> None:
    """Rows of another request could be cut into layers of the wrong width without an error."""
    most = settings.method.rows if isinstance(settings.method, EmoSettings) else None
    asked = [settings.method.form, settings.layers, most]
    if store.identity["request"] != asked:
        raise DataError(
            f"{store.folder}: rows of (form, layers, rows) {store.identity['request']}, but the "
            f"method asks for {asked}; give those that `emo teach-rows` makes for it"
        )


def _given(path: Path | None, what: str, option: str) -> Path:
    if path is None:
        raise ConfigError(f"this method needs {what}; give {option}")
    return path


def _digests(inputs: DistilInputs) -> dict[str, Any]:
    files = {
        "student": inputs.student / "model.json",
        "texts": inputs.texts,
        "store": inputs.store / "manifest.json",
        "alignment": inputs.alignment,
        "rows": inputs.rows / "manifest.json" if inputs.rows else None,
    }
    for path in files.values():
        if path is not None and not path.is_file():
            raise DataError(f"{path}: not there; run the stage that makes it first")
    return {name: sha256_file(path) if path else None for name, path in files.items()}


def _finished(out: Path) -> str | None:
    record, weights = out / "training.json", out / "student" / "model.safetensors"
    whole = record.is_file() and weights.is_file()
    return str(read_json(record)["identity"]) if whole else None


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
