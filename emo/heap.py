"""Memory that was freed and that the C library keeps."""

import ctypes
from collections.abc import Callable
from functools import cache


def give_back_freed_memory() -> None:
    """Return freed memory to the system, where the C library can be asked to (glibc).

    Tensors of ever other sizes leave its heap in pieces that no later tensor fits, so that a long
    run of passes over texts grows though it keeps nothing.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library, or none by that name
        return None
    return trim
