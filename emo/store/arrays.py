"""One ``.npy`` file, written a block at a time and read as a memory map.

Neither side holds more than it touches: a writer appends blocks to a file whose length nobody
knows before the last one, a reader can give back the pages that it has read.
"""

import mmap
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAPPED_BYTES = 1 << 20
"""Smaller files are read into memory."""


class ArrayStream:
    """Writes an array whose first axis grows.

    Args:
        path: The file.
        dtype: Type of the values.
        tail: Shape of a row.
    """

    def __init__(self, path: Path, dtype: str, tail: tuple[int, ...] = ()) -> None:
        self._dtype = np.dtype(dtype)
        self._tail = tail
        self._rows = 0
        self._file = path.open("wb")
        self._file.write(self._header())

    def append(self, block: NDArray[Any]) -> None:
        """Append rows.

        Raises:
            ValueError: They have another shape or type than the array.
        """
        if block.shape[1:] != self._tail or block.dtype != self._dtype:
            raise ValueError(
                f"{self._file.name}: rows of {self._dtype}{self._tail}, "
                f"not {block.dtype}{block.shape[1:]}"
            )
        self._file.write(np.ascontiguousarray(block).data)
        self._rows += len(block)

    def close(self) -> None:
        """Write the length into the header."""
        self._file.seek(0)
        self._file.write(self._header())
        self._file.close()

    def _header(self) -> bytes:
        """Return the header; numpy leaves room in it for any length of the first axis."""
        stream = BytesIO()
        np.lib.format.write_array_header_1_0(
            stream,
            {
                "descr": np.lib.format.dtype_to_descr(self._dtype),
                "fortran_order": False,
                "shape": (self._rows, *self._tail),
            },
        )
        return stream.getvalue()


class StoredArray:
    """An array in a file, to be read only.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._map: mmap.mmap | None = None
        if path.stat().st_size < MAPPED_BYTES:
            self.values: NDArray[Any] = np.load(path)
            return
        with path.open("rb") as stream:
            np.lib.format.read_magic(stream)
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
            self._map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            self.values = np.frombuffer(self._map, dtype, offset=stream.tell()).reshape(shape)

    def release(self) -> None:
        """Give the pages that were read back to the system, which may keep them in its cache.

        They would count as this process's memory, which would grow to the size of the store.
        """
        if self._map is not None:
            self._map.madvise(mmap.MADV_DONTNEED)
