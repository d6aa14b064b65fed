"""Name a process so that another process can tell later whether it still runs."""

import os
import socket
from dataclasses import dataclass
from typing import Self

import psutil

CLOCK_SLACK_SECONDS = 5.0
"""Start times derive from the boot time, which moves a little when the clock is corrected."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process: its number alone would not do, since numbers are given out again.

    Attributes:
        host: name of the machine.
        pid: process number on that machine.
        start: start time in seconds since 1970.
    """

    host: str
    pid: int
    start: float

    @classmethod
    def current(cls) -> Self:
        """Return the identity of the calling process."""
        start = round(psutil.Process().create_time(), 2)
        return cls(host=socket.gethostname(), pid=os.getpid(), start=start)

    def is_known_dead(self) -> bool:
        """Return whether the process has certainly ended.

        About a process of another machine nothing is certain, so it counts as alive. A process
        that has ended but was not yet waited for (a zombie) is dead: it holds and writes nothing.
        """
        if self.host != socket.gethostname():
            return False
        try:
            process = psutil.Process(self.pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
            return abs(process.create_time() - self.start) > CLOCK_SLACK_SECONDS
        except psutil.NoSuchProcess:
            return True
