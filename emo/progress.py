"""Tell a person how far a long stage is: a bar on a terminal, plain lines in the log.

Nothing here touches numbers or random states.
"""

import io
import logging
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar

from tqdm import tqdm

logger = logging.getLogger(__name__)

LOG_SECONDS = 15.0
"""Least time between two progress lines of one stage in the log."""

Item = TypeVar("Item")

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_terminal: IO[str] | None = None


def configure_logging(log: Path | None) -> None:
    """Send log records to standard error and, given a file, all output of the process to it.

    With a file, the descriptors 1 and 2 themselves are pointed at it, so that tracebacks, warnings
    and what C libraries or subprocesses print land there as well. The file is begun anew. The
    former standard error is kept for progress bars.

    Args:
        log: the log file, or None to leave the output where it is.
    """
    if log is not None:
        _redirect(log)
    handler = _BarFriendlyHandler(sys.stderr)
    logging.basicConfig(level=logging.INFO, format=_FORMAT, handlers=[handler], force=True)


class Progress:
    """Count a stage's progress; a context manager.

    Example:
        >>> with Progress(total=3, what="encode") as progress:
        ...     progress.advance(2)
        ...     progress.advance(1)
        >>> progress.done
        3
    """

    def __init__(self, total: int, what: str, unit: str = "texts", start: int = 0) -> None:
        """Describe the stage.

        Args:
            total: number of units in the whole stage.
            what: name of the stage.
            unit: what is counted, in the plural.
            start: units that an earlier, interrupted process has done; left out of the rate.
        """
        self.done = start
        self._total, self._what, self._unit, self._start = total, what, unit, start

    def __enter__(self) -> Self:
        """Start the clock and, on a terminal, the bar."""
        self._began = self._logged = time.monotonic()
        terminal = _terminal or sys.stderr
        self._bar: tqdm[Any] = tqdm(
            total=self._total,
            initial=self._start,
            desc=self._what,
            unit=f" {self._unit}",
            file=terminal,
            disable=not terminal.isatty(),
            dynamic_ncols=True,
            leave=False,
        )
        return self

    def advance(self, count: int) -> None:
        """Add ``count`` units that are done."""
        self.done += count
        self._bar.update(count)
        now = time.monotonic()
        if now - self._logged >= LOG_SECONDS:
            self._logged = now
            self._log(now)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Take the bar away and log the last line."""
        self._bar.close()
        self._log(time.monotonic(), ended=True)

    def _log(self, now: float, ended: bool = False) -> None:
        passed = now - self._began
        rate = (self.done - self._start) / passed if passed > 0 else 0.0
        parts = [f"{self._what}: {self.done}/{self._total} {self._unit}"]
        if rate > 0:
            parts.append(f"{rate:.{1 if rate >= 10 else 3}f} {self._unit}/s")
        if ended:
            parts.append(f"took {_clock(passed)}")
        elif rate > 0:
            parts.append(f"{_clock((self._total - self.done) / rate)} left")
        logger.info(", ".join(parts))


def track(iterable: Iterable[Item], total: int, what: str, unit: str = "texts") -> Iterator[Item]:
    """Yield from ``iterable`` and report progress; one item is one unit.

    Example:
        >>> [letter for letter in track("ab", total=2, what="spell", unit="letters")]
        ['a', 'b']
    """
    with Progress(total, what, unit) as progress:
        for item in iterable:
            yield item
            progress.advance(1)


class _BarFriendlyHandler(logging.StreamHandler[IO[str]]):
    """Writes a line above a bar on the same stream, not into it."""

    def emit(self, record: logging.LogRecord) -> None:
        with tqdm.external_write_mode(file=self.stream):
            super().emit(record)


def _redirect(log: Path) -> None:
    global _terminal
    # The bars of transformers and the hub client have no place in a file; read at their import.
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    if _terminal is None:
        _terminal = os.fdopen(os.dup(2), "w")
    # Appending keeps whole lines when a subprocess, or an orphan of an earlier try, writes too.
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
    os.dup2(target, 1)
    os.dup2(target, 2)
    os.close(target)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"
