"""The files that a training reads."""

from dataclasses import dataclass
from pathlib import Path

from emo.errors import ConfigError


@dataclass(frozen=True, slots=True)
class DistilInputs:
    """Files that a training reads.

    Attributes:
        student: The prepared, untrained student.
        texts: The text set.
        store: The file of the store of the teacher's signals.
        alignment: The token map, for methods with a term on token states.
        rows: The file of the store of attention rows, for methods with an attention term.
        teacher: The prepared teacher, where its store holds no token states.
        row_alignment: The map that its attention rows are selected from, instead of ``rows``.
        tuning: The record of the teacher's tuning, beside its head, for methods with a logit term.
    """

    student: Path
    texts: Path
    store: Path
    alignment: Path | None
    rows: Path | None
    teacher: Path | None = None
    row_alignment: Path | None = None
    tuning: Path | None = None


def given(path: Path | None, what: str, option: str) -> Path:
    """Return a file that a method needs.

    Raises:
        ConfigError: It was not given.
    """
    if path is None:
        raise ConfigError(f"this method needs {what}; give {option}")
    return path
