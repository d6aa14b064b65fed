"""A shard: arrays of some texts and a manifest, in a folder that appears whole or not at all.

The manifest says what the arrays were computed from (the identity) and on which device, what they
sum up to (totals) and the size and checksum of each file. Rows lie in the order in which they were
computed; they are found by the key of their text.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emo.errors import DataError
from emo.outputs import atomic_directory, read_json, sha256_file, write_json
from emo.store.arrays import ArrayStream, StoredArray
from emo.store.keys import KEY_DTYPE, Keys, packed_keys
from emo.store.totals import TOKENS

MANIFEST = "manifest.json"
LAYOUT = 2
KEYS = "keys"


class ShardWriter:
    """Writes the arrays of a shard; see :func:`write_shard`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._streams: dict[str, ArrayStream] = {}
        self._ends: dict[str, int] = {}
        self._offsets: dict[str, str] = {}
        self.texts = 0
        self.create(KEYS, KEY_DTYPE)

    def create(
        self, name: str, dtype: str, tail: tuple[int, ...] = (), offsets: str | None = None
    ) -> None:
        """Begin an array.

        Args:
            name: Its name.
            dtype: Type of its values.
            tail: Shape of a row.
            offsets: Name of the array that says where each text's rows start, for one that has
                another number of rows for each text; None for one row a text.
        """
        self._streams[name] = ArrayStream(self._folder / f"{name}.npy", dtype, tail)
        if offsets is not None:
            self._offsets[name] = offsets
            if offsets not in self._ends:
                self.create(offsets, "int64")
                self._streams[offsets].append(np.zeros(1, dtype=np.int64))
                self._ends[offsets] = 0

    def append(self, name: str, block: NDArray[Any]) -> None:
        """Append rows to an array."""
        self._streams[name].append(block)

    def append_counts(self, name: str, counts: Sequence[int] | NDArray[np.int64]) -> None:
        """Append to an array of offsets how many rows the next texts have."""
        ends = self._ends[name] + np.cumsum(counts, dtype=np.int64)
        self._streams[name].append(ends)
        self._ends[name] = int(ends[-1])

    def append_keys(self, keys: Sequence[str]) -> None:
        """Append the keys of the next texts."""
        self._streams[KEYS].append(packed_keys(keys))
        self.texts += len(keys)

    def finish(
        self, identity: Mapping[str, Any], totals: Mapping[str, Any], device: str | None
    ) -> None:
        """Close every array and write the manifest."""
        for stream in self._streams.values():
            stream.close()
        write_json(
            self._folder / MANIFEST,
            {
                "layout": LAYOUT,
                "identity": dict(identity),
                "texts": self.texts,
                "device": device,
                "totals": dict(totals),
                "offsets": self._offsets,
                "files": {name: _describe(self._path(name)) for name in sorted(self._streams)},
            },
        )

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.npy"


@contextmanager
def write_shard(
    folder: Path,
    identity: Mapping[str, Any],
    totals: Mapping[str, Any],
    device: str | None = None,
) -> Iterator[ShardWriter]:
    """Write a shard as one step: the folder appears whole or not at all.

    Args:
        folder: Where the shard will stand.
        identity: Everything that the arrays depend on besides the texts, as plain JSON values.
        totals: Numbers that sum up over shards; read when the block ends.
        device: Where a model that it is made by runs. No part of the identity: shards of one store
            may be made on several.
    """
    with atomic_directory(folder) as temporary:
        writer = ShardWriter(temporary)
        yield writer
        writer.finish(identity, totals, device)


class Shard:
    """A finished shard, opened for reading; sizes are checked, contents only by :meth:`verify`.

    ``offsets`` names, for each array with another number of rows for each text, the array that says
    where these start.

    Args:
        folder: The shard's folder.

    Raises:
        DataError: No manifest, another layout, or a file that is missing or of another size; the
            message names the file and the way out.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not (folder / MANIFEST).is_file():
            raise DataError(f"{folder}: no {MANIFEST}; the shard is unfinished; {again(folder)}")
        manifest = read_json(folder / MANIFEST)
        if manifest["layout"] != LAYOUT:
            raise DataError(
                f"{folder}: layout {manifest['layout']}, this version reads {LAYOUT}; "
                f"{again(folder)}"
            )
        self.identity: dict[str, Any] = manifest["identity"]
        self.texts: int = manifest["texts"]
        self.totals: dict[str, Any] = manifest["totals"]
        self.device: str | None = manifest.get("device")  # older shards do not say it
        self._files: dict[str, dict[str, Any]] = manifest["files"]
        self.offsets: dict[str, str] = manifest["offsets"]
        self._open: dict[str, StoredArray] = {}
        for name, file in self._files.items():
            path = self._path(name)
            if not path.is_file():
                raise DataError(f"{path}: missing; {again(folder)}")
            if path.stat().st_size != file["bytes"]:
                raise DataError(f"{path}: truncated or overwritten; {again(folder)}")

    def __str__(self) -> str:
        """Say in one line what it takes."""
        size, tokens = self.bytes, self.totals.get(TOKENS)
        by_token = f", {size / tokens:,.0f} a token" if tokens else ""
        return (
            f"{self.folder}: {self.texts:,} texts in {size / 1e6:,.1f} MB, "
            f"{size / max(self.texts, 1):,.0f} bytes a text{by_token}; on {self.device}"
        )

    @property
    def digest(self) -> str:
        """Digest of the manifest, and by its checksums of everything in the shard."""
        return sha256_file(self.folder / MANIFEST)

    @property
    def bytes(self) -> int:
        """Size of all arrays."""
        return sum(file["bytes"] for file in self._files.values())

    @property
    def manifest_bytes(self) -> int:
        """Size of the manifest."""
        return (self.folder / MANIFEST).stat().st_size

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return sorted(self._files)

    def array_bytes(self, name: str) -> int:
        """Return the size of an array's file."""
        size: int = self._files[name]["bytes"]
        return size

    def verify(self) -> None:
        """Compare every file with its checksum.

        Raises:
            DataError: One differs.
        """
        for name, file in self._files.items():
            if sha256_file(self._path(name)) != file["sha256"]:
                raise DataError(f"{self._path(name)}: damaged; {again(self.folder)}")

    def keys(self) -> Keys:
        """Return the packed key of each row; not kept in memory."""
        keys: Keys = np.load(self._path(KEYS))
        return keys

    def array(self, name: str) -> NDArray[Any]:
        """Return an array by name.

        Raises:
            DataError: The shard has no such signal.
        """
        if name not in self._open:
            if name not in self._files:
                raise DataError(f"{self.folder}: no signal `{name}`; it holds {self.names}")
            self._open[name] = StoredArray(self._path(name))
        return self._open[name].values

    def piece(self, name: str, row: int) -> NDArray[Any]:
        """Return what an array with offsets holds of one text."""
        values = self.array(name)
        offsets = self.array(self.offsets[name])
        return values[offsets[row] : offsets[row + 1]]

    def counts(self, name: str) -> NDArray[np.int64]:
        """Return how many rows of an array with offsets each text has."""
        return np.diff(self.array(self.offsets[name]))

    def release(self) -> None:
        """Give back the memory of what was read."""
        for array in self._open.values():
            array.release()

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npy"


def again(folder: Path) -> str:
    """Say how a shard is made again, and it alone."""
    return (
        f"remove {folder} and run `snakemake {folder} {folder.parent}/store.json`, which makes "
        "only this shard again"
    )


def _describe(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
