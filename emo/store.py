"""Arrays on disk with a manifest: teacher signals, and the attention rows added to them.

A store is a folder of ``.npy`` files and a ``manifest.json`` that is written last, with the
identity of what the arrays were computed from and a checksum of each file. Arrays are written and
read as memory maps, so neither side holds more than it touches. Rows are addressed by the digest
of the text, never by position in some file.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emo.errors import DataError
from emo.outputs import atomic_directory, read_json, sha256_file, write_json

MANIFEST = "manifest.json"
LAYOUT = 1


class StoreWriter:
    """Creates the arrays of a store; see :func:`write_store`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._arrays: dict[str, Any] = {}

    def create(self, name: str, shape: tuple[int, ...], dtype: str) -> Any:
        """Return a writable memory map of a new array."""
        path = self._folder / f"{name}.npy"
        if 0 in shape:
            # Nothing can be mapped of an empty array.
            np.save(path, np.empty(shape, dtype))
            self._arrays[name] = np.load(path)
        else:
            self._arrays[name] = np.lib.format.open_memmap(
                path, mode="w+", dtype=np.dtype(dtype), shape=shape
            )
        return self._arrays[name]

    def save(self, name: str, array: NDArray[Any]) -> None:
        """Write an array that is already in memory."""
        np.save(self._folder / f"{name}.npy", array)
        self._arrays[name] = array

    def finish(self, identity: Mapping[str, Any], keys: Sequence[str]) -> None:
        """Flush every array and write the manifest."""
        for array in self._arrays.values():
            if isinstance(array, np.memmap):
                array.flush()
        files = {name: sha256_file(self._folder / f"{name}.npy") for name in sorted(self._arrays)}
        write_json(
            self._folder / MANIFEST,
            {"layout": LAYOUT, "identity": dict(identity), "files": files, "keys": list(keys)},
        )


@contextmanager
def write_store(
    folder: Path, identity: Mapping[str, Any], keys: Sequence[str]
) -> Iterator[StoreWriter]:
    """Write a store as one step: the folder appears whole or not at all.

    Args:
        folder: Where the store will stand.
        identity: Everything that the arrays depend on, as plain JSON values.
        keys: Key of the text of each row, in row order.
    """
    with atomic_directory(folder) as temporary:
        writer = StoreWriter(temporary)
        yield writer
        writer.finish(identity, keys)


class Store:
    """A finished store, opened for reading.

    Args:
        folder: The store's folder.

    Raises:
        DataError: No manifest, another layout, a file that is missing or whose checksum differs;
            the message names the file and the way out.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / MANIFEST).is_file():
            raise DataError(f"{folder}: no {MANIFEST}; the store is unfinished: make it again")
        manifest = read_json(folder / MANIFEST)
        if manifest["layout"] != LAYOUT:
            raise DataError(
                f"{folder}: layout {manifest['layout']}, this version reads {LAYOUT}; remove the "
                "folder and make it again"
            )
        self.identity: dict[str, Any] = manifest["identity"]
        self.digest = sha256_file(folder / MANIFEST)
        self._rows = {key: row for row, key in enumerate(manifest["keys"])}
        self._arrays = {
            name: self._open(name, digest) for name, digest in manifest["files"].items()
        }

    def _open(self, name: str, digest: str) -> NDArray[Any]:
        path = self.folder / f"{name}.npy"
        if not path.is_file() or sha256_file(path) != digest:
            state = "damaged" if path.is_file() else "missing"
            raise DataError(f"{path}: {state}; remove {self.folder} and make it again")
        array = np.load(path, mmap_mode=None if path.stat().st_size < 1 << 20 else "r")
        return np.asarray(array) if array.size == 0 else array

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return an array by name.

        Raises:
            DataError: The store has no such signal.
        """
        if name not in self._arrays:
            raise DataError(f"{self.folder}: no signal `{name}`; it holds {sorted(self._arrays)}")
        return self._arrays[name]

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """Return the row of each text key.

        Raises:
            DataError: A text is not in the store.
        """
        missing = [key for key in keys if key not in self._rows]
        if missing:
            raise DataError(
                f"{self.folder}: {len(missing)} of {len(keys)} texts are not in the store "
                f"(first: {missing[0][:12]}…); it was made from other texts: make it again"
            )
        return np.fromiter((self._rows[key] for key in keys), dtype=np.int64, count=len(keys))
