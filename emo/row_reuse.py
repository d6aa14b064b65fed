"""Attention rows that stand on disk already: what another student or request asked the teacher.

A teacher's rows depend on the texts that share a pass, but not on who asked, nor on which other
rows were asked for, since a pass always gives all rows of a layer. So where the texts of a chunk
and everything else that a pass depends on are the same, a row is the same to the last bit, and is
copied instead of computed.

Shapes: ``k`` layers, ``m`` rows, ``R`` teacher tokens of a text but the prompt's.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emo.errors import DataError
from emo.provenance import settings_digest
from emo.store import Shard

logger = logging.getLogger(__name__)

CHUNK_DIGEST = "chunk_digest"
CHUNK_START = "chunk_start"
DIGEST_DTYPE = "S16"


def chunk_digest(source: Mapping[str, Any], keys: Sequence[str]) -> bytes:
    """Return what the rows of a chunk are known by.

    Args:
        source: Everything that a pass depends on besides its texts.
        keys: Keys of the texts that the teacher reads, in order.
    """
    return settings_digest([dict(source), list(keys)]).encode()


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk of texts in the shards that hold it.

    Attributes:
        places: Each shard, and the row of the chunk's first text in it.
    """

    places: list[tuple[Shard, int]]

    def rows(
        self, text: int, layers: Sequence[int], positions: NDArray[np.int64]
    ) -> NDArray[Any] | None:
        """Return the ``(k, m, R)`` rows of a text, or None unless all are there.

        Args:
            text: Place of the text in the order of the passes.
            layers: Teacher layers.
            positions: ``(m,)`` teacher positions.
        """
        found: dict[int, NDArray[Any]] = {}
        for shard, start in self.places:
            stored = shard.piece("teacher_position", start + text)
            if not len(stored):
                continue
            order = np.argsort(stored)
            at = order[np.searchsorted(stored, positions, sorter=order).clip(max=len(order) - 1)]
            if (stored[at] == positions).all():
                depth = len(shard.identity["layers"])
                block = shard.piece("values", start + text).reshape(depth, len(stored), -1)
                for number, layer in enumerate(shard.identity["layers"]):
                    found.setdefault(layer, block[number, at])
        if not found.keys() >= set(layers):
            return None
        return np.stack([found[layer] for layer in layers])

    def ranking(self, name: str, texts: int) -> list[NDArray[Any]] | None:
        """Return the importance of each text by which rows were ranked, in the order of the passes.

        Args:
            name: Name of the array.
            texts: Texts of the chunk.
        """
        for shard, start in self.places:
            if name in shard.names:
                return [shard.piece(name, start + text) for text in range(texts)]
        return None


class RowPool:
    """Shards of attention rows, looked through by chunk.

    Args:
        folders: Where shards may stand; one that is damaged, or just being made again, is left
            out, which costs passes and changes nothing.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._chunks: dict[bytes, list[tuple[Shard, int]]] = {}
        for folder in folders:
            try:
                shard = Shard(folder)
                shard.verify()
                chunks = zip(shard.array(CHUNK_DIGEST), shard.array(CHUNK_START), strict=True)
                for digest, start in chunks:
                    self._chunks.setdefault(bytes(digest), []).append((shard, int(start)))
            except (DataError, OSError) as error:
                logger.warning("not reused: %s", error)

    def release(self) -> None:
        """Give back the memory of what was read."""
        for shard in {shard for places in self._chunks.values() for shard, _ in places}:
            shard.release()

    def chunk(self, digest: bytes) -> StoredChunk:
        """Return what is there of a chunk."""
        return StoredChunk(self._chunks.get(digest, []))
