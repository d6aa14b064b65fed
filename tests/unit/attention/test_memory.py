"""A captured pass holds rows, never maps."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from emo.attention import Capture
from emo.attention import scores as module

from ...tiny_architectures import fused_and_eager, random_batch

TEXTS, HEADS, LENGTH = 2, 4, 64


class LargestTensor(TorchDispatchMode):
    """Remembers the largest result of any operation, those of the backward pass included."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else (result,):
            if isinstance(value, torch.Tensor):
                self.numbers = max(self.numbers, value.numel())
        return result


def largest(encoder, capture, batch):
    with LargestTensor() as seen:
        encoding = encoder(*batch, capture)
        loss = encoding.vectors.sum() + encoding.rows.square().sum()
        (loss + encoding.importance.square().sum()).backward()
    return seen.numbers


@pytest.mark.parametrize("name", ["bert", "qwen3"])
def test_no_result_is_a_map_of_every_head(name, monkeypatch):
    encoder, _ = fused_and_eager(name, max_position_embeddings=LENGTH + 2)
    batch = random_batch((LENGTH, 5))
    maps = TEXTS * HEADS * LENGTH * LENGTH
    monkeypatch.setattr(module, "BLOCK", maps // 2)
    positions = torch.zeros(TEXTS, 3, dtype=torch.int64)
    usual = largest(encoder, None, batch)
    assert usual < maps, "the fused kernel keeps none, either"
    assert largest(encoder, Capture([0, 1, 2], positions), batch) == usual
    everything = Capture([0, 1, 2], positions, batch[1][None])
    assert largest(encoder, everything, batch) == maps // 2


def test_one_block_holds_no_more_than_it_may(monkeypatch):
    """The importance of a long text is computed some rows at a time."""
    encoder, _ = fused_and_eager("bert", max_position_embeddings=LENGTH)
    batch = random_batch((LENGTH, LENGTH))
    with torch.no_grad():
        expected = encoder(*batch, Capture(queries=batch[1][None])).importance
        monkeypatch.setattr(module, "BLOCK", 1)
        found = encoder(*batch, Capture(queries=batch[1][None])).importance
    torch.testing.assert_close(found, expected)
