"""Checkpoints that can be trusted: sealed when whole, skipped by name when not.

The trainer resumes silently from a checkpoint without optimiser or random state, and fails for
good on one without its state file. So a checkpoint counts only once it is sealed: a file with the
size and digest of every other file, written last.
"""

import logging
import re
import shutil
from pathlib import Path
from typing import Any

from emo.errors import DataError
from emo.outputs import read_json, sha256_file, write_json

logger = logging.getLogger(__name__)

SEAL = "seal.json"
KEPT = 2
"""Checkpoints kept: the newest may turn out to be broken."""
STATE = "trainer_state.json"
REQUIRED = (
    "model.safetensors",
    "optimizer.pt",
    "rng_state.pth",
    "scheduler.pt",
    STATE,
)


def seal(checkpoint: Path) -> None:
    """Declare a checkpoint whole.

    Raises:
        DataError: A file that resuming needs is missing.
    """
    missing = [name for name in REQUIRED if not (checkpoint / name).is_file()]
    if missing:
        raise DataError(f"{checkpoint}: written without {', '.join(missing)}")
    write_json(checkpoint / SEAL, _digests(checkpoint))


def discard_older(checkpoint: Path, best: int | None = None) -> None:
    """Remove all checkpoints but a sealed one, the one before it, and the best so far.

    The trainer's own rotation would run before the new checkpoint is sealed.

    Args:
        checkpoint: The sealed one.
        best: Step of the best, where a training looks for one.
    """
    for step, older in _numbered(checkpoint.parent)[:-KEPT]:
        if step != best:
            shutil.rmtree(older)


def trainer_state(checkpoint: Path) -> Any:
    """Return what transformers' Trainer wrote of where it stood."""
    return read_json(checkpoint / STATE)


def latest_sealed(folder: Path) -> Path | None:
    """Return the newest whole checkpoint of a run; remove broken ones, naming each in the log."""
    for _, checkpoint in reversed(_numbered(folder)):
        fault = _fault(checkpoint)
        if fault is None:
            return checkpoint
        logger.warning("skipping %s: %s; trying the one before", checkpoint, fault)
        shutil.rmtree(checkpoint)
    return None


def is_whole(checkpoint: Path) -> bool:
    """Return whether a checkpoint is there, sealed and undamaged."""
    return _fault(checkpoint) is None


_NAME = re.compile(r"checkpoint-(\d+)")


def _numbered(folder: Path) -> list[tuple[int, Path]]:
    """Return the checkpoints of a run by step."""
    found = ((_NAME.fullmatch(path.name), path) for path in folder.glob("checkpoint-*"))
    return sorted((int(match[1]), path) for match, path in found if match)


def _fault(checkpoint: Path) -> str | None:
    if not (checkpoint / SEAL).is_file():
        return "incomplete, the writing process was interrupted"
    try:
        sealed = read_json(checkpoint / SEAL)
    except DataError:
        return f"its {SEAL} is damaged"
    changed = sorted(
        name for name, digest in sealed.items() if _digest(checkpoint / name) != digest
    )
    return f"damaged: {', '.join(changed)}" if changed else None


def _digests(checkpoint: Path) -> dict[str, str | None]:
    files = sorted(path for path in checkpoint.iterdir() if path.is_file() and path.name != SEAL)
    return {path.name: _digest(path) for path in files}


def _digest(path: Path) -> str | None:
    return sha256_file(path) if path.is_file() else None
