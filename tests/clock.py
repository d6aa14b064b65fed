"""A stand-in for the module time."""


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now
