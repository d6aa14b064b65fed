"""Token states as they are stored, and back.

Shapes: ``n`` tokens, ``D`` width of a state, ``W`` components kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emo.config_store import StatePrecision
from emo.errors import CheckError, DataError
from emo.store.shard import Shard

LARGEST = {"int8": 127, "int4": 7}
"""Largest number of each integer precision; the smallest is its opposite."""
CLIPPED = {"int8": (1.0,), "int4": (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)}
"""Shares of a token's largest number that its largest integer may stand for; larger ones are cut
off. The best is taken: with few integers, finer steps are worth more than the ends."""
BASIS = "basis"
"""Folder of the basis, beside the shards that were written in it."""


@dataclass(frozen=True, slots=True)
class Basis:
    """The space of the principal components of token states.

    Attributes:
        centre: ``(D,)`` float32.
        components: ``(W, D)`` float32, orthonormal rows that span it.
        digest: Digest of the folder it was read from.
    """

    centre: NDArray[np.float32]
    components: NDArray[np.float32]
    digest: str


def read_basis(folder: Path) -> Basis:
    """Read a basis.

    Raises:
        DataError: It is missing or damaged.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: not there; fit the basis first with `emo teach-basis`")
    shard = Shard(folder)
    shard.verify()
    centre, components = (np.array(shard.array(name)) for name in ("centre", "components"))
    return Basis(centre, components, shard.digest)


@dataclass(frozen=True, slots=True)
class StateCodec:
    """Writes states with less precision or width, and restores them.

    Attributes:
        precision: Type in which numbers are stored.
        basis: Components that are kept, or None for the states themselves.
    """

    precision: StatePrecision
    basis: Basis | None

    @property
    def has_scales(self) -> bool:
        """Whether each token has a scale."""
        return self.precision in LARGEST

    def stored(self, width: int) -> tuple[str, int]:
        """Return type and number of the stored numbers of a state of ``D`` dimensions."""
        width = width if self.basis is None else len(self.basis.components)
        return ("uint8", width // 2) if self.precision == "int4" else (self.precision, width)

    def encode(
        self, states: NDArray[np.float32]
    ) -> tuple[NDArray[Any], NDArray[np.float32] | None]:
        """Return what is stored: numbers, and for integers ``(n,)`` scales.

        Formula:
            c = B (x - μ);  for integers up to K, q_j = min(max(round(c_j / s), -K), K), where
            s = a max_j |c_j| / K with that share a of ``CLIPPED`` for which |s q - c| is least

        Args:
            states: ``(n, D)``; for int4 D, or W with a basis, is even.

        Raises:
            CheckError: A state does not fit into float16.

        Example:
            >>> codes, scales = StateCodec("int8", None).encode(np.float32([[1.0, -2.0]]))
            >>> codes.tolist()
            [[64, -127]]
        """
        if self.basis is not None:
            states = np.matmul(states - self.basis.centre, self.basis.components.T)
        if self.precision in LARGEST:
            codes, scales = _rounded(states, LARGEST[self.precision], CLIPPED[self.precision])
            return _packed(codes) if self.precision == "int4" else codes, scales
        if self.precision == "float16":
            with np.errstate(over="ignore"):
                halves = states.astype(np.float16)
            if not np.isfinite(halves).all():
                raise CheckError(
                    "a token state is too large for float16; set the teacher's `store.states` to "
                    "int8 or float32"
                )
            return halves, None
        return states, None

    def decode(
        self, codes: NDArray[Any], scales: NDArray[np.float32] | None
    ) -> NDArray[np.float32]:
        """Restore ``(n, D)`` states, float32.

        Formula:
            x ≈ Bᵀ s q + μ
        """
        codes = _unpacked(codes) if self.precision == "int4" else codes
        states: NDArray[np.float32] = codes.astype(np.float32)
        if scales is not None:
            states *= scales[:, None]
        if self.basis is not None:
            restored: NDArray[np.float32] = states @ self.basis.components + self.basis.centre
            return restored
        return states


def _rounded(
    states: NDArray[np.float32], most: int, shares: Sequence[float]
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return the integers up to ``most`` and the scales that lose least, the first of equals."""
    largest = np.abs(states).max(axis=1, initial=0.0)
    codes = np.zeros(states.shape, dtype=np.int8)
    scales = np.ones(len(states), dtype=np.float32)
    least = np.full(len(states), np.inf)
    for share in shares:
        tried = np.where(largest > 0, share * largest / most, 1.0).astype(np.float32)
        rounded = np.clip(np.rint(states / tried[:, None]), -most, most)
        lost = np.square(rounded * tried[:, None] - states).sum(axis=1)
        better = lost < least
        codes[better], scales[better], least[better] = rounded[better], tried[better], lost[better]
    return codes, scales


def _packed(codes: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Put two numbers from -7 to 7 into a byte, the first one low."""
    halves = (codes + np.int8(8)).astype(np.uint8)
    packed: NDArray[np.uint8] = halves[:, ::2] | halves[:, 1::2] << np.uint8(4)
    return packed


def _unpacked(packed: NDArray[np.uint8]) -> NDArray[np.int8]:
    halves = np.stack([packed & np.uint8(15), packed >> np.uint8(4)], axis=2)
    return halves.reshape(len(packed), -1).astype(np.int8) - np.int8(8)
