"""A teacher pass that also takes importance and attention rows, beside a plain ``encode``.

Both start from strings and end with arrays on the CPU. The rows are the last layer's, as many as
the default EMO asks for, taken at each text's first tokens: which ones makes no difference.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.material import Material, row_request
from benchmarks.results import Result, device_name
from benchmarks.timing import ratios, spread, timed_in_turns
from emo.attention import Capture
from emo.embedding import load_model
from emo.encoder import load_encoder
from emo.teacher_pass import (
    BATCH_TEXTS,
    TeacherBatch,
    importance_capture,
    importances,
    teacher_batches,
    teacher_pass,
)
from emo.texts import joined, load_texts

NAME = "teacher_pass"
PAIRS = 5
TEXTS = 8 * BATCH_TEXTS
"""Texts of each repeat."""


class PlainPass:
    """``SentenceTransformer.encode``.

    Args:
        folder: The prepared teacher.
    """

    def __init__(self, folder: Path) -> None:
        self._model = load_model(folder)

    def __call__(self, texts: Sequence[str]) -> None:
        """Embed texts."""
        self._model.encode([*texts], batch_size=BATCH_TEXTS, show_progress_bar=False)


class CapturedPass:
    """The pass of `emo.teach`, with everything that EMO takes out of a teacher at once.

    Args:
        folder: The prepared teacher.
    """

    def __init__(self, folder: Path) -> None:
        self._encoder = load_encoder(folder).eval()
        self._tokenizer = self._encoder.tokenizer()

    def __call__(self, texts: Sequence[str]) -> None:
        """Take vectors, states, importance and rows of texts."""
        for batch in teacher_batches(self._tokenizer(texts), self._encoder):
            encoding = teacher_pass(self._encoder, batch, self._capture(batch))
            for taken in (encoding.vectors, encoding.states, encoding.rows):
                taken.cpu().numpy()
            importances(batch, encoding).cpu().numpy()

    def _capture(self, batch: TeacherBatch) -> Capture:
        rows = row_request().rows
        assert rows is not None
        texts, length = batch.mask.shape
        positions = torch.arange(min(rows, length), device=batch.mask.device).expand(texts, -1)
        return Capture(
            layers=[self._encoder.layers - 1],
            positions=positions,
            queries=importance_capture(batch).queries,
        )


def measure_teacher_pass(material: Material) -> list[Result]:
    """Time the two passes in turns; each pair has sentences of its own."""
    sentences = [joined(text) for text in load_texts(material.sentences).texts]
    plain, captured = PlainPass(material.teacher), CapturedPass(material.teacher)

    def texts_of(number: int) -> list[str]:
        return sentences[number * TEXTS : (number + 1) * TEXTS]

    base, seconds = timed_in_turns(
        [lambda number: plain(texts_of(number)), lambda number: captured(texts_of(number))], PAIRS
    )
    return [Result.of(NAME, spread(ratios(seconds, base)), "x encode", device_name())]
