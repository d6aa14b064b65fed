"""What of a teacher pass is written into a shard."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from emo.config_store import StoreSettings
from emo.encoder import Encoding
from emo.errors import CheckError
from emo.state_writer import StateWriter
from emo.store import TOKENS, Basis, ShardWriter
from emo.teacher_pass import TeacherBatch, importances, token_states
from emo.texts import Text, TextSet, joined


class SignalWriter:
    """Appends passes to a shard, and sums up what a store says of all its texts.

    Args:
        writer: The shard.
        settings: How token states are stored.
        basis: Components they are stored in, if any.
        vector_width: Width of an embedding.
        state_width: Width of a token state.
    """

    def __init__(
        self,
        writer: ShardWriter,
        settings: StoreSettings,
        basis: Basis | None,
        vector_width: int,
        state_width: int,
    ) -> None:
        self._writer = writer
        self._counts = {"texts": 0, TOKENS: 0, "text_tokens": 0}
        self._sums = {"vector_sum": np.zeros(vector_width), "state_sum": np.zeros(state_width)}
        self._states: StateWriter | None = None
        if settings.states != "online":
            self._states = StateWriter(writer, settings.states, basis, settings.tokens, state_width)
        writer.create("vectors", "float32", (vector_width,))
        writer.create("importance", "float32", offsets="offsets")
        writer.create("importance_all", "float32", offsets="offsets")
        writer.create("special", "bool", offsets="offsets")

    def append(self, chunk: TextSet, batch: TeacherBatch, encoding: Encoding) -> None:
        """Write a pass.

        Args:
            chunk: The texts that the batch numbers.
            batch: The texts of the pass.
            encoding: What the teacher says of them.

        Raises:
            CheckError: A vector is not finite, or a state does not fit its precision.
        """
        writer = self._writer
        vectors = _finite_vectors(encoding, [chunk.texts[row] for row in batch.rows])
        counts = [len(text.places) for text in batch.texts]
        special = np.concatenate([text.special[text.places] for text in batch.texts])
        states = token_states(batch, encoding)
        by_text, by_all = (_array(each[batch.read]) for each in importances(batch, encoding))
        writer.append_keys([chunk.keys[row] for row in batch.rows])
        writer.append_counts("offsets", counts)
        writer.append("vectors", vectors)
        writer.append("importance", by_text)
        writer.append("importance_all", by_all)
        writer.append("special", special)
        if self._states is not None:
            self._states.append(states, counts, special, by_text)
        self._counts["texts"] += len(vectors)
        self._counts[TOKENS] += len(special)
        self._counts["text_tokens"] += int((~special).sum())
        self._sums["vector_sum"] += vectors.sum(axis=0, dtype=np.float64)
        self._sums["state_sum"] += states[~special].sum(axis=0, dtype=np.float64)

    def totals(self) -> dict[str, Any]:
        """Return the sums, which add up over shards."""
        sums = {name: values.tolist() for name, values in self._sums.items()}
        return self._counts | sums | ({} if self._states is None else self._states.totals())


def _finite_vectors(encoding: Encoding, texts: Sequence[Text]) -> NDArray[np.float32]:
    vectors = _array(encoding.vectors)
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        text = joined(texts[int(np.argmin(finite))])
        raise CheckError(
            f"the teacher's vector of the text {text[:40]!r} is not finite; "
            "set the teacher's `dtype` to float32"
        )
    return vectors


def _array(values: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = values.cpu().float().numpy()
    return array
