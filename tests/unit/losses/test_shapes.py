"""Shape checks."""

import pytest
import torch

from emo.losses.shapes import require_masks, require_shapes


def test_agreeing_shapes_and_fixed_sizes_pass():
    require_shapes(
        cost=(torch.ones(2, 3, 4), "B S R"),
        mass=(torch.ones(2, 4), "B R"),
        row=(torch.ones(3), "3"),
    )


@pytest.mark.parametrize(
    ("tensor", "letters", "message"),
    [
        (torch.ones(2, 4), "B S", r"mass has shape \(2, 4\), expected \(B=2, S=3\)"),
        (torch.ones(2), "B S", r"mass has shape \(2,\), expected \(B=2, S=3\)"),
        (torch.ones(4, 2), "P 3", r"mass has shape \(4, 2\), expected \(P=4, 3\)"),
        (torch.ones(5, 6), "D D", r"mass has shape \(5, 6\), expected \(D=5, D=5\)"),
        (torch.ones(0), "P", r"mass has shape \(0,\): no dimension may be empty"),
    ],
)
def test_disagreeing_shapes_name_both_sides(tensor, letters, message):
    with pytest.raises(ValueError, match=message):
        require_shapes(cost=(torch.ones(2, 3), "B S"), mass=(tensor, letters))


def test_masks_must_be_boolean():
    with pytest.raises(ValueError, match="mask must be boolean, got torch.float32"):
        require_masks(mask=torch.ones(2))
