"""What is foretold, as numbers and in words."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Stage:
    """What the jobs of one rule will cost.

    Attributes:
        rule: The rule.
        jobs: How many jobs.
        seconds: Wall-clock time of all jobs, one after the other, their start included.
        bytes: Size of what they store of the texts.
    """

    rule: str
    jobs: int
    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a teacher's signals of a text set, and a training if one is asked for, will cost.

    Attributes:
        texts: Texts of the set.
        tokens: Teacher tokens of them, the prompt's left out.
        counted_texts: Texts whose tokens were counted; the others count as these do on average.
        passed_texts: Texts that the teacher read for the probe.
        device: What the probe ran on.
        threads: Threads of torch.
        probe_seconds: How long it took.
        stages: By rule, in their order.
    """

    texts: int
    tokens: int
    counted_texts: int
    passed_texts: int
    device: str
    threads: int
    probe_seconds: float
    stages: Sequence[Stage]

    def record(self) -> dict[str, Any]:
        """Return it as JSON values, sums included."""
        seconds, size = self._sums()
        return asdict(self) | {"seconds": seconds, "bytes": size}

    def lines(self) -> list[str]:
        """Say it in lines of a table."""
        counted = (
            "" if self.counted_texts == self.texts else f" (from {self.counted_texts:,} texts)"
        )
        lines = [
            f"{self.texts:,} texts, {self.tokens:,} teacher tokens{counted}; {self.device}, "
            f"threads: {self.threads}; probe of {self.probe_seconds:.0f} s, in which the teacher "
            f"read {self.passed_texts:,} texts",
            f"{'rule':<18}{'jobs':>5}{'seconds':>12}{'MB':>12}{'bytes/text':>12}{'bytes/token':>13}",
        ]
        lines += [self._line(s.rule, str(s.jobs), s.seconds, s.bytes) for s in self.stages]
        return [*lines, self._line("sum", "", *self._sums())]

    def _sums(self) -> tuple[float, int]:
        return sum(s.seconds for s in self.stages), sum(s.bytes for s in self.stages)

    def _line(self, name: str, jobs: str, seconds: float, size: int) -> str:
        line = f"{name:<18}{jobs:>5}{seconds:>12,.1f}"
        if not size:
            return line
        by_text, by_token = size / max(self.texts, 1), size / max(self.tokens, 1)
        return f"{line}{size / 1e6:>12,.1f}{by_text:>12,.0f}{by_token:>13,.0f}"
