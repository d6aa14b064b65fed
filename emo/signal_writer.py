"""What of a teacher pass is written into a shard.

Shapes: ``B`` texts of a pass, ``T`` their tokens but the prompt's, all in a row.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from emo.config_store import StoreSettings
from emo.encoder import Encoding
from emo.errors import CheckError
from emo.store import Basis, Reconstruction, ShardWriter, StateCodec
from emo.teacher_pass import TeacherBatch, importances
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
        self._most = settings.tokens
        self._codec = StateCodec(settings.states, basis)
        self._lost = Reconstruction(state_width)
        self._counts = {"texts": 0, "text_tokens": 0}
        self._importance = {"importance": 0.0, "importance_kept": 0.0}
        self._sums = {"vector_sum": np.zeros(vector_width), "state_sum": np.zeros(state_width)}
        dtype, stored_width = self._codec.stored(state_width)
        offsets = "offsets"
        if self._most is not None:
            offsets = "kept_offsets"
            writer.create("kept", "int32", offsets=offsets)
        writer.create("states", dtype, (stored_width,), offsets=offsets)
        if self._codec.has_scales:
            writer.create("state_scale", "float32", offsets=offsets)
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
        states = _array(encoding.states[batch.read])
        by_text, by_all = (_array(each[batch.read]) for each in importances(batch, encoding))
        writer.append_keys([chunk.keys[row] for row in batch.rows])
        writer.append_counts("offsets", counts)
        writer.append("vectors", vectors)
        writer.append("importance", by_text)
        writer.append("importance_all", by_all)
        writer.append("special", special)
        self._append_states(states, self._keep(counts, special, by_text))
        self._counts["texts"] += len(vectors)
        self._counts["text_tokens"] += int((~special).sum())
        self._sums["vector_sum"] += vectors.sum(axis=0, dtype=np.float64)
        self._sums["state_sum"] += states[~special].sum(axis=0, dtype=np.float64)

    def totals(self) -> dict[str, Any]:
        """Return the sums, which add up over shards."""
        sums = {name: values.tolist() for name, values in self._sums.items()}
        return self._counts | self._importance | sums | self._lost.totals()

    def _keep(
        self,
        counts: Sequence[int],
        special: NDArray[np.bool_],
        importance: NDArray[np.float32],
    ) -> NDArray[np.int64] | slice:
        """Return which of the T tokens keep their state, and write their positions."""
        if self._most is None:
            return slice(None)
        kept, numbers, start = [], [], 0
        for count in counts:
            places = np.flatnonzero(~special[start : start + count])
            ranked = np.argsort(-importance[start : start + count][places], kind="stable")
            chosen = np.sort(places[ranked[: self._most]])
            kept.append(chosen)
            numbers.append(start + chosen)
            start += count
        self._writer.append_counts("kept_offsets", [len(chosen) for chosen in kept])
        self._writer.append("kept", np.concatenate(kept).astype(np.int32))
        every = np.concatenate(numbers)
        self._importance["importance"] += float(importance.sum(dtype=np.float64))
        self._importance["importance_kept"] += float(importance[every].sum(dtype=np.float64))
        return every

    def _append_states(self, states: NDArray[np.float32], kept: NDArray[np.int64] | slice) -> None:
        chosen = states[kept]
        codes, scales = self._codec.encode(chosen)
        self._writer.append("states", codes)
        if scales is not None:
            self._writer.append("state_scale", scales)
        self._lost.add(chosen, self._codec.decode(codes, scales))


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
