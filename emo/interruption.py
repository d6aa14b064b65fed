"""Turn the signals that ask a process to end into exceptions, so that it can end in order."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Interruption:
    """A context manager: while it is open, the first SIGTERM or SIGINT raises, later ones wait.

    SIGTERM raises ``SystemExit(143)`` and SIGINT ``KeyboardInterrupt``, at whatever place the main
    thread is; a repeated signal cannot disturb the closing that this sets off. A signal that
    the process was started to ignore stays ignored. Off the main thread nothing is installed,
    since Python handles signals there only.

    Attributes:
        received: the signal that came, or None.
    """

    def __init__(self) -> None:
        """Install nothing yet."""
        self.received: int | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        """Install the handlers."""
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Put the previous handlers back."""
        while self._previous:
            signal.signal(*self._previous.popitem())

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            return
        self.received = number
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)
