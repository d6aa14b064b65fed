"""Bytes of a store that will be made, from a shard that has been made of a sample.

The shard says what a row of each array takes and which arrays have a row for each text, token,
kept token or selected row; how many of these there will be is known or estimated from the texts.
Nothing here knows what is stored, so that it holds for whatever a shard holds.

Shapes: ``n`` texts of the sample.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from emo.row_reuse import CHUNK_DIGEST, CHUNK_START
from emo.store import Shard

_A_CHUNK = (CHUNK_DIGEST, CHUNK_START)


def store_bytes(
    shard: Shard, texts: int, ragged: Mapping[str, float], shards: int, chunks: int
) -> int:
    """Return the size of all shards of a store, manifests included.

    Args:
        shard: A shard of the same kind, of a sample of the texts.
        texts: Texts of the store.
        ragged: For each array of offsets, how many rows the arrays will have that it divides.
        shards: Shards of the store.
        chunks: Chunks in which the texts will be read.
    """
    total = float(shards * shard.manifest_bytes)
    for name in shard.names:
        array = shard.array(name)
        row = array.dtype.itemsize * int(np.prod(array.shape[1:]))
        if name in shard.offsets:
            rows: float = ragged[shard.offsets[name]]
        elif name in shard.offsets.values():
            rows = texts + shards
        else:
            rows = chunks if name in _A_CHUNK else texts
        total += shards * (shard.array_bytes(name) - len(array) * row) + rows * row
    return round(total)


def grown(
    counts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    length_sum: float,
    square_sum: float,
) -> float:
    """Return the sum of a count over all texts, from that of a sample.

    Counts grow with a text's length, some with its square: both are fitted by least squares, and
    scaled so that they add up on the sample.

    Args:
        counts: ``(n,)``, the count of each text of the sample.
        lengths: ``(n,)``, its tokens.
        length_sum: Sum of the tokens over all texts.
        square_sum: Sum of their squares.

    Example:
        >>> lengths = np.array([2, 3, 5])
        >>> round(grown(lengths**2, lengths, length_sum=20.0, square_sum=76.0), 6)
        76.0
    """
    powers = np.stack([lengths, lengths**2], axis=1).astype(np.float64)
    fitted, *_ = np.linalg.lstsq(powers, counts.astype(np.float64), rcond=None)
    on_sample = float((powers @ fitted).sum())
    if on_sample <= 0:
        return 0.0
    return float(fitted @ [length_sum, square_sum]) * float(counts.sum()) / on_sample
