"""Time spent in a block, added up over blocks."""

import time
from types import TracebackType
from typing import Self


def now() -> float:
    """Return the time in seconds since an unnamed moment."""
    return time.monotonic()


class Stopwatch:
    """Runs while its block runs; a context manager that may be entered again.

    Attributes:
        seconds: Sum over the blocks that have ended.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began = 0.0

    def __enter__(self) -> Self:
        """Start."""
        self._began = now()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop."""
        self.seconds += now() - self._began
