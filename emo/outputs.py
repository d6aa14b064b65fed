"""Write results so that a file or folder under its final name is always whole.

Everything is written under a temporary name beside its place, forced to disk and then renamed.
A killed process leaves at most a temporary, which the next writer of the same output clears.
"""

import hashlib
import itertools
import json
import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from emo.errors import DataError
from emo.process import ProcessIdentity

logger = logging.getLogger(__name__)

FIRST_WAIT_SECONDS = 1.0
WAIT_SECONDS = 30.0
"""How long :func:`exclusive` waits before its first log line, and then between two."""

_CHUNK_BYTES = 1 << 20
_counter = itertools.count()


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling of ``path`` that takes its place when the block ends well.

    The sibling keeps the suffix of ``path``, since some writers choose their format by it. Parent
    folders are made. When the block raises, the temporary is removed and ``path`` is as before.

    Example:
        >>> import tempfile
        >>> target = Path(tempfile.mkdtemp()) / "scores.txt"
        >>> with atomic_file(target) as temporary:
        ...     _ = temporary.write_text("0.5")
        >>> target.read_text()
        '0.5'
    """
    temporary = _temporary(path)
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
        _sync(path.parent)
    finally:
        _remove(temporary)


@contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Yield an empty temporary folder that takes the place of ``path`` when the block ends well.

    An existing ``path`` is moved aside and removed once the new folder stands. Between these two
    renames, and then only, ``path`` is missing: never half written.
    """
    temporary = _temporary(path)
    temporary.mkdir()
    try:
        yield temporary
        for inside in temporary.rglob("*"):
            if not inside.is_symlink():
                _sync(inside)
        _sync(temporary)
        _replace_directory(temporary, path)
    finally:
        _remove(temporary)


def sha256_file(path: Path) -> str:
    """Return the SHA-256 digest of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` as JSON: whole or not at all, keys sorted, so equal values are equal bytes.

    Raises:
        ValueError: ``value`` holds NaN or an infinity, which JSON does not know.
    """
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
    with atomic_file(path) as temporary:
        temporary.write_text(f"{text}\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        DataError: the file is missing or damaged; the message names it.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path} is missing; run the step that writes it first") from None
    except ValueError as error:  # covers broken UTF-8 and broken JSON
        raise DataError(f"{path} is damaged ({error}); delete it and run again") from error


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold ``{path}.lock`` while the block runs, so that one process at a time makes ``what``.

    Meant for an orphaned job and its successor: the second one waits, and says for whom. The lock
    belongs to the operating system, so it is free again however its holder ended, ``kill -9``
    included. The file ``{path}.holder.json`` only serves the message.

    Args:
        path: place and stem of the lock; a path that no rule declares as its output.
        what: what the lock protects, for the log, such as ``"the teacher store of trec"``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock, holder = FileLock(f"{path}.lock"), path.with_name(f"{path.name}.holder.json")
    _acquire(lock, holder, what)
    try:
        write_json(holder, asdict(ProcessIdentity.current()))
        yield
    finally:
        _remove(holder)
        lock.release()


def _acquire(lock: FileLock, holder: Path, what: str) -> None:
    timeout = FIRST_WAIT_SECONDS
    while True:
        try:
            lock.acquire(timeout=timeout)
        except Timeout:
            logger.warning("waiting for %s, held by %s", what, _describe(holder))
            timeout = WAIT_SECONDS
        else:
            return


def _describe(holder: Path) -> str:
    try:
        record = read_json(holder)
        return f"process {record['pid']} on {record['host']}"
    except (DataError, KeyError, TypeError):  # the holder is about to write it, or just left
        return "another process"


def _temporary(path: Path) -> Path:
    """Return an unused temporary name beside ``path``, its folder made and dead ones cleared."""
    path.parent.mkdir(parents=True, exist_ok=True)
    me = ProcessIdentity.current()
    ours = re.compile(rf"\.tmp-(\d+)-([\d.]+)-\d+-{re.escape(me.host)}-{re.escape(path.name)}")
    for sibling in path.parent.glob(".tmp-*"):
        match = ours.fullmatch(sibling.name)
        if match and ProcessIdentity(me.host, int(match[1]), float(match[2])).is_known_dead():
            logger.info("removing %s, left by an interrupted process", sibling)
            _remove(sibling)
    return path.with_name(f".tmp-{me.pid}-{me.start:.2f}-{next(_counter)}-{me.host}-{path.name}")


def _replace_directory(temporary: Path, path: Path) -> None:
    if not (path.is_symlink() or path.exists()):
        os.replace(temporary, path)
        _sync(path.parent)
        return
    replaced = _temporary(path)
    os.replace(path, replaced)
    try:
        os.replace(temporary, path)
    except OSError:
        os.replace(replaced, path)
        raise
    _sync(path.parent)
    _remove(replaced)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
