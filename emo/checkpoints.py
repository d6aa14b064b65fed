"""Checkpoints that can be trusted: sealed when whole, skipped by name when not.

The trainer resumes silently from a checkpoint without optimiser or random state, and fails for
good on one without its state file. So a checkpoint counts only once it is sealed: a file with the
size and digest of every other file, written last.
"""

import logging
import re
import shutil
from pathlib import Path

from emo.errors import DataError
from emo.outputs import read_json, sha256_file, write_json

logger = logging.getLogger(__name__)

SEAL = "seal.json"
REQUIRED = (
    "model.safetensors",
    "optimizer.pt",
    "rng_state.pth",
    "scheduler.pt",
    "trainer_state.json",
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


def latest_sealed(folder: Path) -> Path | None:
    """Return the newest whole checkpoint of a run; remove broken ones, naming each in the log."""
    found = [
        (int(match[1]), path)
        for path in folder.glob("checkpoint-*")
        if (match := _NAME.fullmatch(path.name))
    ]
    for _, checkpoint in sorted(found, reverse=True):
        fault = _fault(checkpoint)
        if fault is None:
            return checkpoint
        logger.warning("skipping %s: %s; trying the one before", checkpoint, fault)
        shutil.rmtree(checkpoint)
    return None


_NAME = re.compile(r"checkpoint-(\d+)")


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
