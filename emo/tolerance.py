"""Bear the failures of something that only looks on: warn once, pause, try again."""

import logging
import time
from collections.abc import Callable

from emo.errors import EmoError
from emo.tracking_uri import without_passwords

logger = logging.getLogger(__name__)

RETRY_SECONDS = 60.0
"""Pause after a failure, since each failing call may itself wait long."""


class Tolerance:
    """Runs actions whose failure must not stop the work.

    Args:
        warning: what the first failure is logged as, with its reason in the one ``%s``.
    """

    def __init__(self, warning: str) -> None:
        self._warning = warning
        self._warned = False
        self._retry_at = 0.0

    def attempt(self, action: Callable[[], None], last_chance: bool = False) -> None:
        """Run the action unless a failure is recent.

        Args:
            action: what to do; it will be asked again, so it starts where it stopped.
            last_chance: do not wait for the end of the pause.

        Raises:
            EmoError: the action raised it: the user has something to mend.
        """
        if time.monotonic() < self._retry_at and not last_chance:
            return
        try:
            action()
        except EmoError:
            raise
        except Exception as error:  # whatever lies beneath may raise: files, SQL, HTTP
            self._retry_at = time.monotonic() + RETRY_SECONDS
            if not self._warned:
                self._warned = True
                logger.warning(self._warning, reason(error))


def reason(error: Exception) -> str:
    """Return one line that says what an exception is, without passwords.

    Example:
        >>> reason(OSError("disk full"))
        'OSError: disk full'
    """
    first_line = without_passwords(next(iter(str(error).splitlines()), "no message"))
    return f"{type(error).__name__}: {first_line}"
