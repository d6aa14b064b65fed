"""Remove the directory lock that Snakemake leaves behind when it is killed outright.

Snakemake locks its working directory by files in ``.snakemake/locks``, without saying who wrote
them, and removes them at the end; after ``kill -9`` or a power cut they stay, and every later run
stops until ``snakemake --unlock``. It takes the lock after it has read the Snakefile and built its
graph, and before any job (and before ``onstart``). So whoever reads the Snakefile registers here
first, and a lock whose possible owners are all known to be dead can go.

Guaranteed: a lock is removed only if

* a process of this machine that read this Snakefile in this directory, before the lock was
  written, ended without signing off;
* no registered process may still live, and one of another machine may always;
* no other process of this machine looks like a Snakemake at work in this directory.

Processes that start together cannot mistake each other, since looking, removing and registering
are one step under an operating-system lock. Dry runs neither remove nor register.

Not guaranteed: a *different* Snakefile, run at the same time in the same directory from *another*
machine, does not register and is not seen. Lock rows in a database (``--persistence-backend``)
are left alone. Where in doubt the lock stays, and ``snakemake --unlock`` remains the way out.
"""

import atexit
import logging
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import psutil
from filelock import FileLock

from emo.errors import DataError
from emo.outputs import read_json, write_json
from emo.process import ProcessIdentity

logger = logging.getLogger(__name__)

_NO_LOCK_ARGUMENTS = frozenset({"--nolock", "--dry-run", "--dryrun", "--unlock"})
"""Arguments of Snakemake processes that take no lock; jobs of a run carry ``--nolock``."""

_SHORT_DRY_RUN = re.compile(r"-[Ffkpq]*n[Ffkpq]*")
"""``-n``, alone or among Snakemake's other letters that take no value, such as ``-np``."""


def clear_stale_lock(workdir: Path) -> bool:
    """Remove a dead run's Snakemake lock and register this process as a possible owner.

    To be called while the main process of Snakemake reads the Snakefile:
    ``if workflow.is_main_process: clear_stale_lock(Path.cwd())``.

    Args:
        workdir: Snakemake's working directory.

    Returns:
        Whether a lock was removed.
    """
    if _takes_no_lock(sys.argv[1:]):
        return False
    owners = workdir / ".snakemake" / "emo-owners"
    owners.mkdir(parents=True, exist_ok=True)
    with FileLock(owners / "register.lock"):
        # Listed before the look at other processes: what one of them writes later is not ours.
        locks = sorted((workdir / ".snakemake" / "locks").glob("*.lock"))
        records = {path: _read(path) for path in owners.glob("*.json")}
        cleared = bool(locks) and _is_stale(locks, records.values(), workdir)
        if cleared:
            for lock in locks:
                lock.unlink(missing_ok=True)
            logger.warning("removed the Snakemake lock of a run that was killed in %s", workdir)
        if cleared or not locks:
            for path, owner in records.items():
                if owner is None or owner.is_known_dead():
                    path.unlink(missing_ok=True)
        _register(owners)
    return cleared


def _takes_no_lock(arguments: Iterable[str]) -> bool:
    """Tell from a command line that it will not lock; in doubt it does, which errs to caution."""
    return any(
        argument in _NO_LOCK_ARGUMENTS or _SHORT_DRY_RUN.fullmatch(argument)
        for argument in arguments
    )


def _is_stale(locks: list[Path], owners: Iterable[ProcessIdentity | None], workdir: Path) -> bool:
    owners = list(owners)
    if not owners or any(owner is None or not owner.is_known_dead() for owner in owners):
        return False
    first_start = min(owner.start for owner in owners if owner is not None)
    if any(lock.stat().st_mtime < first_start for lock in locks):
        return False
    return not _other_snakemake(workdir)


def _other_snakemake(workdir: Path) -> bool:
    """Return whether another process of this machine may be a Snakemake that locks ``workdir``.

    Our ancestors are left out: they may be wrappers that were given Snakemake's command line.
    """
    me = psutil.Process()
    ours = {me.pid, *(parent.pid for parent in me.parents())}
    for process in psutil.process_iter():
        try:
            names = [Path(argument).name for argument in process.cmdline()]
            if process.pid in ours or "snakemake" not in names:
                continue
            if _takes_no_lock(names[names.index("snakemake") :]):
                continue
            if Path(process.cwd()).samefile(workdir):
                return True
        except (psutil.NoSuchProcess, FileNotFoundError):  # it ended, or its folder is gone
            continue
        except psutil.AccessDenied:  # another user's: its folder cannot be seen
            return True
    return False


def _register(owners: Path) -> None:
    me = ProcessIdentity.current()
    record = owners / f"{me.host}-{me.pid}.json"
    write_json(record, asdict(me))

    def sign_off() -> None:
        if os.getpid() == me.pid:  # a forked child ends without ending the run
            record.unlink(missing_ok=True)

    atexit.register(sign_off)


def _read(record: Path) -> ProcessIdentity | None:
    try:
        return ProcessIdentity(**read_json(record))
    except (DataError, TypeError):
        return None
