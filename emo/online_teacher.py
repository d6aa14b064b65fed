"""The teacher beside the student: asked for the token states and attention rows of each batch.

For teachers whose token states would fill a disk. What is small of their signals is stored as
ever; positions, passes and the selection of rows are the code that stores the rest, too, so that a
training is the same either way, up to what other texts in a pass move the last digits.

Shapes: ``k`` layers, ``m`` rows of a text, ``R`` its teacher tokens but the prompt's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emo.alignment import Alignment
from emo.encoder import Encoder, Encoding
from emo.requests import RowRequest
from emo.row_selection import Selection, build_ranking, select_rows
from emo.store import Store
from emo.store.keys import Keys
from emo.teacher_pass import (
    TeacherBatch,
    row_capture,
    rows_at,
    teacher_batches,
    teacher_pass,
    text_importance,
    token_states,
)
from emo.token_source import Taught, TextRows, TokenSource
from emo.tokens import TokenizedText


@dataclass(frozen=True, slots=True)
class OnlineRows:
    """What attention rows are selected from.

    Attributes:
        request: What is asked for.
        layers: Teacher layers, 0-based.
        pairs: The request's map; its text numbers are rows of the text set.
        compared: Teacher tokens of the texts whose rows are compared.
        ranked: Those of the texts by whose importance rows are ranked.
    """

    request: RowRequest
    layers: Sequence[int]
    pairs: Alignment
    compared: Sequence[TokenizedText]
    ranked: Sequence[TokenizedText]


class OnlineTeacher(TokenSource):
    """Runs the frozen teacher on each batch.

    It is no part of the model that is trained: no optimiser, checkpoint or wrapper for several
    processes ever sees it. States and rows of the same text come out of one pass.

    Args:
        encoder: The teacher.
        signals: Its signals, without states.
        keys: Store key of each text.
        texts: Teacher tokens of the texts, given when their states are asked for.
        rows: Given when attention rows are asked for.

    Raises:
        DataError: A text is not in the store.
    """

    def __init__(
        self,
        encoder: Encoder,
        signals: Store,
        keys: Sequence[str] | Keys,
        texts: Sequence[TokenizedText] | None,
        rows: OnlineRows | None,
    ) -> None:
        self._encoder = encoder.eval().requires_grad_(False)
        self._signals = signals
        self._signal_rows = signals.rows(keys)
        self._texts = texts
        self._rows = rows

    def read(self, texts: Sequence[int]) -> Taught:
        """Ask the teacher."""
        asked = self._rows
        chosen = [] if asked is None else self._selections(texts, asked)
        states: dict[int, NDArray[np.float32]] = {}
        rows: dict[int, TextRows] = {}
        together = asked is not None and asked.compared is self._texts
        if self._texts is not None:
            layers = asked.layers if asked is not None and together else ()
            for batch, encoding in self._passes(self._texts, texts, layers):
                ends = np.cumsum([len(text.places) for text in batch.texts])
                parts = np.split(token_states(batch, encoding), ends[:-1])
                states.update(zip(batch.rows, parts, strict=True))
                if together:
                    rows.update(_text_rows(batch, encoding, chosen))
        if asked is not None and not together:
            for batch, encoding in self._passes(asked.compared, texts, asked.layers):
                rows.update(_text_rows(batch, encoding, chosen))
        return Taught(
            [states[place] for place in sorted(states)], [rows[place] for place in sorted(rows)]
        )

    def release(self) -> None:
        """Do nothing: a pass leaves nothing behind."""

    def _passes(
        self, tokenized: Sequence[TokenizedText], texts: Sequence[int], layers: Sequence[int]
    ) -> Iterator[tuple[TeacherBatch, Encoding]]:
        for batch in teacher_batches([tokenized[text] for text in texts], self._encoder):
            yield batch, teacher_pass(self._encoder, batch, row_capture(batch, layers))

    def _selections(self, texts: Sequence[int], asked: OnlineRows) -> list[Selection]:
        compared = [asked.compared[text] for text in texts]
        ranked = [asked.ranked[text] for text in texts]
        if asked.request.own_ranking:
            batches = list(teacher_batches(ranked, self._encoder))
            every = asked.request.ranking == "content"
            importance = text_importance(batches, self._encoder, every)
        else:
            importance = self._signals.pieces("importance", self._signal_rows[list(texts)])
        ranking = build_ranking(asked.request, compared, ranked, importance)
        return select_rows(asked.request, asked.pairs, texts, ranking)


def _text_rows(
    batch: TeacherBatch, encoding: Encoding, chosen: Sequence[Selection]
) -> dict[int, TextRows]:
    """Return the selected rows of the texts of a pass, by the numbers that the batch gives them."""
    positions = [chosen[row].teacher for row in batch.rows]
    blocks = rows_at(batch, encoding, positions)
    return {
        row: TextRows(chosen[row].student, block)
        for row, block in zip(batch.rows, blocks, strict=True)
    }
