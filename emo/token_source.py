"""Where a training takes the teacher's token states and attention rows of a batch from.

Shapes: ``R`` teacher tokens of a text but the prompt's, or those whose state is kept, ``D`` width
of a state; of attention rows ``k`` layers and ``m`` rows of a text.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emo.store import Store
from emo.store.keys import Keys


@dataclass(frozen=True, slots=True)
class TextRows:
    """Attention rows of a text.

    Attributes:
        student_position: ``(m,)``, position of the student's token of each row.
        values: ``(k, m, R)``, the teacher's rows.
    """

    student_position: NDArray[np.int64]
    values: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Taught:
    """What the teacher says of the tokens of a batch.

    Attributes:
        states: ``(R, D)`` of each text; empty unless states are asked for.
        rows: Those of each text; empty unless rows are asked for.
    """

    states: list[NDArray[np.float32]]
    rows: list[TextRows]


class TokenSource(ABC):
    """Gives what a method asks for of the tokens of any batch."""

    @abstractmethod
    def read(self, texts: Sequence[int]) -> Taught:
        """Return what the teacher says of texts of the set, given by their numbers."""

    @abstractmethod
    def release(self) -> None:
        """Give back the memory of what it alone has read, once that is copied."""


class StoredSource(TokenSource):
    """Reads what the teacher pass stored.

    Args:
        signals: The teacher's signals.
        keys: Store key of each text.
        states: Whether states are asked for.
        rows: The store of the attention rows, if they are asked for.

    Raises:
        DataError: A text is not in a store.
    """

    def __init__(
        self, signals: Store, keys: Sequence[str] | Keys, states: bool, rows: Store | None = None
    ) -> None:
        self._signals = signals
        self._signal_rows = signals.rows(keys) if states else None
        self._rows = rows
        if rows is not None:
            self._row_rows = rows.rows(keys)
            self._layers = len(rows.identity["layers"])

    def read(self, texts: Sequence[int]) -> Taught:
        """Return what is stored of the texts."""
        states: list[NDArray[np.float32]] = []
        if self._signal_rows is not None:
            states = self._signals.states(self._signal_rows[list(texts)])
        return Taught(states, [] if self._rows is None else self._text_rows(texts, self._rows))

    def release(self) -> None:
        """Give the pages of the rows back."""
        if self._rows is not None:
            self._rows.release()

    def _text_rows(self, texts: Sequence[int], rows: Store) -> list[TextRows]:
        stored = self._row_rows[list(texts)]
        selected = rows.pieces("student_position", stored)
        found = []
        for values, chosen in zip(rows.pieces("values", stored), selected, strict=True):
            width = len(values) // max(self._layers * len(chosen), 1)
            found.append(TextRows(chosen, values.reshape(self._layers, len(chosen), width)))
        return found
