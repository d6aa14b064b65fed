"""The work of a shard of attention rows: select, find or compute, and write, a chunk at a time.

Shapes: ``k`` layers, ``m`` rows, ``R`` teacher tokens of a text but the prompt's.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from emo.alignment import Alignment
from emo.encoder import Encoder
from emo.progress import Progress
from emo.requests import RowRequest
from emo.row_reuse import (
    CHUNK_DIGEST,
    CHUNK_START,
    DIGEST_DTYPE,
    RowPool,
    StoredChunk,
    chunk_digest,
)
from emo.row_selection import Selection, build_ranking, select_rows
from emo.row_texts import compared_texts, content_texts
from emo.store import ShardWriter, Store
from emo.teacher_pass import (
    TeacherBatch,
    row_capture,
    rows_at,
    teacher_batches,
    teacher_pass,
    text_importance,
)
from emo.texts import TextSet, text_key
from emo.tokens import TextTokenizer, TokenizedText

RowPrecision = Literal["float32", "float16"]


class RowJob:
    """Selects, finds and computes the rows of a shard, a chunk at a time.

    Args:
        request: What is asked for.
        encoder: The teacher.
        layers: Teacher layers, 0-based.
        source: Everything that a pass depends on besides its texts.
        signals: The teacher's signals.
        pool: Rows that are there already.
        writer: Takes the rows.
        precision: Type in which they are stored.
        normaliser: The student's tokenizer where the paper's form of the texts is read.
    """

    def __init__(
        self,
        request: RowRequest,
        encoder: Encoder,
        layers: Sequence[int],
        source: dict[str, Any],
        signals: Store,
        pool: RowPool,
        writer: ShardWriter,
        precision: RowPrecision,
        normaliser: TextTokenizer | None,
    ) -> None:
        self.passes = 0
        self.rows = 0
        self.tokens = 0
        self._request = request
        self._encoder = encoder
        self._tokenizer = encoder.tokenizer()
        self._layers = layers
        self._source = source
        self._signals = signals
        self._pool = pool
        self._writer = writer
        self._precision = precision
        self._normaliser = normaliser
        content = request.ranking == "content"
        self._ranking_name = "ranking_content" if content else "ranking_text"
        writer.create("teacher_position", "int64", offsets="offsets")
        writer.create("student_position", "int64", offsets="offsets")
        writer.create("values", precision, offsets="value_offsets")
        writer.create(CHUNK_DIGEST, DIGEST_DTYPE)
        writer.create(CHUNK_START, "int64")
        if self._request.own_ranking:
            writer.create(self._ranking_name, "float32", offsets="ranking_offsets")

    def run(self, chunk: TextSet, rows: range, pairs: Alignment, progress: Progress) -> None:
        """Store the rows of a chunk.

        Args:
            chunk: The texts.
            rows: Their rows in the text set.
            pairs: The map; its text numbers are rows of the text set.
            progress: Is told of the texts.
        """
        read = compared_texts(chunk.texts, self._normaliser)
        digest = chunk_digest(self._source, [text_key(text) for text in read])
        stored = self._pool.chunk(digest)
        self._writer.append(CHUNK_DIGEST, np.array([digest], dtype=DIGEST_DTYPE))
        self._writer.append(CHUNK_START, np.array([self._writer.texts]))
        tokenized = ranked = self._tokenizer(read)
        if self._request.ranking == "content":
            ranked = self._tokenizer(content_texts(read))
        batches = list(teacher_batches(tokenized, self._encoder))
        order = [row for batch in batches for row in batch.rows]
        importance = self._importance(chunk, ranked, order, stored)
        ranking = build_ranking(self._request, tokenized, ranked, importance)
        selections = select_rows(self._request, pairs, rows, ranking)
        first = 0
        for batch in batches:
            chosen = [selections[row] for row in batch.rows]
            blocks = self._found(stored, first, chosen) or self._computed(batch, chosen)
            self._append(chunk, batch, chosen, blocks)
            if self._request.own_ranking:
                self._append_ranking([importance[row] for row in batch.rows])
            first += len(batch.rows)
            progress.advance(len(batch.rows))
        self._pool.release()

    def _found(
        self, stored: StoredChunk, first: int, chosen: Sequence[Selection]
    ) -> list[NDArray[Any]] | None:
        """Return the rows of the texts of a batch where all are there, each ``(k, m, R)``."""
        blocks = []
        for place, selection in enumerate(chosen):
            block = np.empty((len(self._layers), 0, 0), dtype=self._precision)
            if len(selection.teacher):
                found = stored.rows(first + place, self._layers, selection.teacher)
                if found is None:
                    return None
                block = found
            blocks.append(block)
        return blocks

    def _computed(self, batch: TeacherBatch, chosen: Sequence[Selection]) -> list[NDArray[Any]]:
        """Ask the teacher for the rows."""
        encoding = teacher_pass(self._encoder, batch, row_capture(batch, self._layers))
        self.passes += 1
        blocks = rows_at(batch, encoding, [selection.teacher for selection in chosen])
        return [block.astype(self._precision) for block in blocks]

    def _append(
        self,
        chunk: TextSet,
        batch: TeacherBatch,
        chosen: Sequence[Selection],
        blocks: Sequence[NDArray[Any]],
    ) -> None:
        writer = self._writer
        writer.append_keys([chunk.keys[row] for row in batch.rows])
        writer.append_counts("offsets", [len(selection.teacher) for selection in chosen])
        writer.append("teacher_position", np.concatenate([s.teacher for s in chosen]))
        writer.append("student_position", np.concatenate([s.student for s in chosen]))
        writer.append_counts("value_offsets", [block.size for block in blocks])
        writer.append("values", np.concatenate([block.reshape(-1) for block in blocks]))
        self.rows += sum(len(selection.teacher) for selection in chosen)
        self.tokens += sum(len(text.places) for text in batch.texts)

    def _append_ranking(self, importance: Sequence[NDArray[np.float32]]) -> None:
        self._writer.append_counts("ranking_offsets", [len(values) for values in importance])
        self._writer.append(self._ranking_name, np.concatenate(importance))

    def _importance(
        self,
        chunk: TextSet,
        ranked: Sequence[TokenizedText],
        order: Sequence[int],
        stored: StoredChunk,
    ) -> list[NDArray[np.float32]]:
        """Return what the rows of each text are ranked by: stored, found or asked for."""
        if not self._request.own_ranking:
            return self._signals.pieces("importance", self._signals.rows(chunk.keys))
        found = stored.ranking(self._ranking_name, len(ranked))
        if found is not None:
            return [found[place] for place in np.argsort(order)]
        batches = list(teacher_batches(ranked, self._encoder))
        self.passes += len(batches)
        return text_importance(batches, self._encoder, every=self._request.ranking == "content")
