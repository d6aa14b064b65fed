"""A training is run once for each identity, by one process at a time."""

import logging
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from emo.errors import DataError
from emo.outputs import exclusive, read_json, sha256_file

logger = logging.getLogger(__name__)


def input_digests(files: Mapping[str, Path | None]) -> dict[str, str | None]:
    """Return the digest of each file that a training reads, None for one that is not given.

    Raises:
        DataError: A file is not there.
    """
    for path in files.values():
        if path is not None and not path.is_file():
            raise DataError(f"{path}: not there; run the stage that makes it first")
    return {name: sha256_file(path) if path else None for name, path in files.items()}


def train_once(
    identity: str, checkpoints: Path, record: Path, weights: Path, train: Callable[[Path], None]
) -> None:
    """Run a training, unless a process that was waited for has finished the same one.

    Args:
        identity: Digest of all that the training depends on.
        checkpoints: Folder for checkpoints of any identity; emptied after a good end.
        record: JSON file of the result, with its ``identity``.
        weights: The result's weights, without which it is not finished.
        train: Runs the training; its argument is the folder for this identity's checkpoints.
    """
    folder = checkpoints / identity
    with exclusive(checkpoints / "training", f"the training of {record.parent}"):
        if record.is_file() and weights.is_file() and read_json(record)["identity"] == identity:
            logger.info("%s: already finished by another process", record.parent)
            shutil.rmtree(folder, ignore_errors=True)
            return
        train(folder)
        shutil.rmtree(folder)
