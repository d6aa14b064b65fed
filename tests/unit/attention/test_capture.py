"""What a capture may ask for."""

import pytest
import torch

from emo.attention import Capture

from ...tiny_architectures import fused_and_eager, random_batch

ZEROS = torch.zeros(2, 3, dtype=torch.int64)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"layers": [0]}, "layers and positions of a capture must be given together"),
        ({"positions": ZEROS}, "layers and positions of a capture must be given together"),
        ({"layers": [0], "positions": ZEROS.int()}, "positions must be int64, got torch.int32"),
        ({"queries": torch.ones(1, 2, 4)}, "queries must be bool, got torch.float32"),
    ],
)
def test_wrong_captures_are_named(asked, message):
    with pytest.raises(ValueError, match=message):
        Capture(**asked)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"layers": [0, 3], "positions": ZEROS}, r"no layers \[3\] in a model of 3"),
        ({"layers": [-1], "positions": ZEROS}, r"no layers \[-1\] in a model of 3"),
        (
            {"layers": [0], "positions": ZEROS[:1]},
            r"positions has shape \(1, 3\), expected \(2, m\)",
        ),
        (
            {"queries": torch.ones(1, 2, 3, dtype=torch.bool)},
            r"queries has shape \(1, 2, 3\), expected \(Q, 2, 5\)",
        ),
    ],
)
def test_captures_that_do_not_fit_are_named(asked, message):
    encoder, _ = fused_and_eager("bert")
    with pytest.raises(ValueError, match=message):
        encoder(*random_batch((5, 4)), Capture(**asked))


def test_what_is_not_asked_for_is_empty():
    encoder, _ = fused_and_eager("bert")
    batch = random_batch((5, 4))
    neither = encoder(*batch)
    assert neither.rows.numel() == neither.importance.numel() == 0
    rows = encoder(*batch, Capture([1, 1], ZEROS))
    assert (rows.rows.shape, rows.importance.numel()) == ((2, 2, 3, 5), 0)
    assert torch.equal(rows.rows[0], rows.rows[1])
    sums = encoder(*batch, Capture(queries=batch[1][None]))
    assert (sums.rows.numel(), sums.importance.shape) == (0, (1, 2, 5))
