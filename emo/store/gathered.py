"""A store: shards side by side in a folder, and ``store.json``, which joins them.

The file names every shard with the digest of its manifest, so its own digest stands for the whole
content, and opening a store reads no array. Contents are compared with their checksums when shards
are gathered, and by ``emo store verify``.
"""

import logging
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emo.errors import DataError
from emo.outputs import read_json, sha256_file, write_json
from emo.store.keys import Keys, packed_keys, positions
from emo.store.name import ShardName
from emo.store.shard import LAYOUT, Shard, again
from emo.store.states import BASIS, Basis, StateCodec, read_basis
from emo.store.totals import TOKENS, constants, measures, summed

logger = logging.getLogger(__name__)

STORE_FILE = "store.json"
HALF_ROUNDING = 2.0**-11
"""Largest relative error of a number above 6e-5 that is rounded to float16."""


def gather(folders: Sequence[Path], out: Path) -> None:
    """Join all shards of a text set.

    Args:
        folders: The shards, in any order.
        out: The store's file, in the folder in which the shards lie.

    Raises:
        DataError: A shard is damaged, missing, elsewhere, or was made from something else than the
            others; the message names it.
    """
    named = sorted((ShardName.parse(folder.name), folder) for folder in folders)
    _require_all(named, out)
    shards = [Shard(folder) for _, folder in named]
    for shard in shards:
        shard.verify()
        if shard.identity != shards[0].identity:
            raise DataError(
                f"{shard.folder}: made from something else than {shards[0].folder} "
                f"({_difference(shard.identity, shards[0].identity)}); {again(shard.folder)}"
            )
    _basis(out.parent, shards[0].identity)
    totals = summed([shard.totals for shard in shards])
    record = {
        "texts": sum(shard.texts for shard in shards),
        "bytes": sum(shard.bytes for shard in shards),
        **measures(totals),
    }
    if shards[0].identity.get("values") == "float16":
        record["row_relative_error_bound"] = HALF_ROUNDING
    write_json(
        out,
        {
            "layout": LAYOUT,
            "identity": shards[0].identity,
            "shards": [_entry(shard) for shard in shards],
            "constants": constants(totals),
            "record": record,
        },
    )
    logger.info("%s: %s", out, ", ".join(f"{key} {value}" for key, value in record.items()))


def verify(path: Path) -> None:
    """Compare every file of a store with its checksum.

    Args:
        path: The store's file.

    Raises:
        DataError: A shard is damaged; the message names all that are.
    """
    store = Store(path)
    faults = []
    for shard in store.shards:
        try:
            shard.verify()
        except DataError as error:
            faults.append(str(error))
    if faults:
        raise DataError("\n".join(faults))
    logger.info("%s: %d shards are whole", path, len(store.shards))


class Store:
    """A gathered store, opened for reading.

    Args:
        path: The store's file.

    Raises:
        DataError: No such file, another layout, or a shard that is missing, of another size or not
            the one that was gathered; the message names it and the way out.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise DataError(f"{path}: not there; gather its shards with `emo store gather`")
        content = read_json(path)
        if content["layout"] != LAYOUT:
            raise DataError(
                f"{path}: layout {content['layout']}, this version reads {LAYOUT}; remove "
                f"{path.parent} and make the store again"
            )
        self.folder = path.parent
        self.identity: dict[str, Any] = content["identity"]
        self.record: dict[str, Any] = content["record"]
        self.digest = sha256_file(path)
        self.shards = [self._shard(entry) for entry in content["shards"]]
        self._starts = np.array([0, *accumulate(shard.texts for shard in self.shards)])
        self._constants = {
            name: np.array(values, dtype=np.float32)
            for name, values in content["constants"].items()
        }
        basis = _basis(self.folder, self.identity)
        self._codec = StateCodec(self.identity.get("store", {}).get("states", "float32"), basis)

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        """Return what is one array for all texts, such as a centre.

        Raises:
            DataError: The store has no such signal.
        """
        if name not in self._constants:
            raise DataError(
                f"{self.folder}: no signal `{name}`; it holds {sorted(self._constants)} and for "
                f"each text {self.shards[0].names}"
            )
        return self._constants[name]

    def __len__(self) -> int:
        return int(self._starts[-1])

    def rows(self, keys: Sequence[str] | Keys) -> NDArray[np.int64]:
        """Return the row of each text key.

        Args:
            keys: Hex keys, or packed ones.

        Raises:
            DataError: A text is not in the store.
        """
        wanted = keys if isinstance(keys, np.ndarray) else packed_keys(keys)
        rows = np.full(len(wanted), -1)
        for start, shard in zip(self._starts, self.shards, strict=False):
            found = positions(shard.keys(), wanted)
            rows = np.where(found >= 0, start + found, rows)
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            raise DataError(
                f"{self.folder}: {len(missing)} of {len(rows)} texts are not in the store "
                f"(first: {wanted[missing[0]].hex()[:12]}…); it was made from other texts: make "
                "it again"
            )
        return rows

    def stacked(self, name: str, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[Any]:
        """Return what an array with one row a text holds of texts: a copy, one row each."""
        places = [self._place(row) for row in rows]
        return np.stack([shard.array(name)[place] for shard, place in places])

    def pieces(self, name: str, rows: Sequence[int] | NDArray[np.int64]) -> list[NDArray[Any]]:
        """Return what an array with offsets holds of texts: views, an array each."""
        places = [self._place(row) for row in rows]
        return [shard.piece(name, place) for shard, place in places]

    @property
    def names(self) -> list[str]:
        """Names of what is stored for each text."""
        return self.shards[0].names

    def states(self, rows: Sequence[int] | NDArray[np.int64]) -> list[NDArray[np.float32]]:
        """Return the token states of texts as the teacher gave them, up to what is lost."""
        codes = self.pieces("states", rows)
        if self._codec.precision == "float32" and self._codec.basis is None:
            return codes
        scales = self.pieces("state_scale", rows) if self._codec.has_scales else None
        restored = self._codec.decode(
            np.concatenate(codes), None if scales is None else np.concatenate(scales)
        )
        return np.split(restored, np.cumsum([len(code) for code in codes])[:-1])

    def counts(self, name: str) -> NDArray[np.int64]:
        """Return how many rows of an array with offsets each text has."""
        return np.concatenate([shard.counts(name) for shard in self.shards])

    def release(self) -> None:
        """Give back the memory of what was read; views that are left read it again."""
        for shard in self.shards:
            shard.release()

    def _place(self, row: int) -> tuple[Shard, int]:
        number = int(np.searchsorted(self._starts, row, side="right")) - 1
        return self.shards[number], int(row - self._starts[number])

    def _shard(self, entry: dict[str, Any]) -> Shard:
        shard = Shard(self.folder / entry["name"])
        if shard.digest != entry["manifest"]:
            raise DataError(
                f"{shard.folder}: not the shard that was gathered; run `snakemake "
                f"{self.folder / STORE_FILE}` or gather again"
            )
        return shard


def _entry(shard: Shard) -> dict[str, Any]:
    return {
        "name": shard.folder.name,
        "texts": shard.texts,
        "tokens": shard.totals.get(TOKENS),
        "bytes": shard.bytes,
        "device": shard.device,
        "manifest": shard.digest,
    }


def _require_all(named: Sequence[tuple[ShardName, Path]], out: Path) -> None:
    if not named:
        raise DataError(f"{out}: no shards to gather")
    count = named[0][0].count
    if [name for name, _ in named] != [ShardName(count, number + 1) for number in range(count)]:
        raise DataError(
            f"{out}: {', '.join(str(name) for name, _ in named)} are not all shards of one set; "
            "make those that are missing"
        )
    for _, folder in named:
        if folder.parent != out.parent:
            raise DataError(f"{folder}: not beside {out}; move it there")


def _basis(folder: Path, identity: dict[str, Any]) -> Basis | None:
    """Return the basis that the states are stored in, if it is that of the shards."""
    digest = identity.get("basis")
    if digest is None:
        return None
    basis = read_basis(folder / BASIS)
    if basis.digest != digest:
        raise DataError(
            f"{folder / BASIS}: not the basis in which the shards are stored; make the shards again"
        )
    return basis


def _difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    names = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
    return f"different {', '.join(names)}"
