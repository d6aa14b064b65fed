"""How the token states of a teacher pass are written into a shard.

Shapes: ``T`` tokens of a pass but the prompt's, all in a row, ``D`` width of a state.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emo.config_store import StatePrecision
from emo.store import Basis, Reconstruction, ShardWriter, StateCodec


class StateWriter:
    """Appends token states to a shard, and sums up what is lost of them.

    Args:
        writer: The shard.
        precision: In which they are stored.
        basis: Components they are stored in, if any.
        most: States of so many text tokens of a text are kept; of all tokens when None.
        width: D.
    """

    def __init__(
        self,
        writer: ShardWriter,
        precision: StatePrecision,
        basis: Basis | None,
        most: int | None,
        width: int,
    ) -> None:
        self._writer = writer
        self._most = most
        self._codec = StateCodec(precision, basis)
        self._lost = Reconstruction(width)
        self._importance = {"importance": 0.0, "importance_kept": 0.0}
        dtype, stored_width = self._codec.stored(width)
        offsets = "offsets"
        if most is not None:
            offsets = "kept_offsets"
            writer.create("kept", "int32", offsets=offsets)
        writer.create("states", dtype, (stored_width,), offsets=offsets)
        if self._codec.has_scales:
            writer.create("state_scale", "float32", offsets=offsets)

    def append(
        self,
        states: NDArray[np.float32],
        counts: Sequence[int],
        special: NDArray[np.bool_],
        importance: NDArray[np.float32],
    ) -> None:
        """Write the states of a pass.

        Args:
            states: ``(T, D)``.
            counts: Tokens of each text.
            special: ``(T,)``, tokens that are no text.
            importance: ``(T,)``, by which it is chosen what is kept.

        Raises:
            CheckError: A state does not fit its precision.
        """
        chosen = states[self._keep(counts, special, importance)]
        codes, scales = self._codec.encode(chosen)
        self._writer.append("states", codes)
        if scales is not None:
            self._writer.append("state_scale", scales)
        self._lost.add(chosen, self._codec.decode(codes, scales))

    def totals(self) -> dict[str, Any]:
        """Return the sums, which add up over shards."""
        return self._importance | self._lost.totals()

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
