"""Keys of texts as the 32 bytes that their 64 hex digits stand for."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

KEY_DTYPE = "S32"

Keys: TypeAlias = NDArray[np.bytes_]


def packed_keys(keys: Sequence[str]) -> Keys:
    """Pack hex keys, see :func:`emo.texts.text_key`.

    Numpy takes zeros at the end of such values for padding; as all have 32 bytes, two are equal
    in numpy if and only if they are equal.

    >>> packed_keys(["00" * 31 + "41"]).shape
    (1,)
    """
    return np.frombuffer(b"".join(map(bytes.fromhex, keys)), dtype=KEY_DTYPE)


def positions(keys: Keys, wanted: Keys) -> NDArray[np.int64]:
    """Return where each wanted key stands among keys, -1 where it does not.

    >>> positions(packed_keys(["bb" * 32, "aa" * 32]), packed_keys(["aa" * 32, "cc" * 32]))
    array([ 1, -1])
    """
    if not len(keys):
        return np.full(len(wanted), -1)
    order = np.argsort(keys, kind="stable")
    found = np.searchsorted(keys, wanted, sorter=order).clip(max=len(keys) - 1)
    return np.where(keys[order[found]] == wanted, order[found], -1)
