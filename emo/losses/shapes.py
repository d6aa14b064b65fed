"""Shape checks shared by the losses."""

import torch
from torch import Tensor


def require_shapes(**tensors: tuple[Tensor, str]) -> None:
    """Check that named tensors agree on the sizes behind shape letters.

    Args:
        tensors: Name to (tensor, space-separated shape letters or sizes). The first tensor that
            uses a letter binds its size; every letter must stand for at least one element.

    Raises:
        ValueError: A tensor has another rank or size than the letters ask for, or is empty.

    Example:
        >>> require_shapes(cost=(torch.ones(2, 3, 4), "B S R"), mass=(torch.ones(2, 5), "B S"))
        Traceback (most recent call last):
        ...
        ValueError: mass has shape (2, 5), expected (B=2, S=3)
    """
    sizes: dict[str, int] = {}
    for name, (tensor, letters) in tensors.items():
        axes = letters.split()
        shape = tuple(tensor.shape)
        if len(shape) == len(axes):
            for axis, size in zip(axes, shape, strict=True):
                sizes.setdefault(axis, int(axis) if axis.isdigit() else size)
        if shape != tuple(sizes.get(axis) for axis in axes):
            raise ValueError(f"{name} has shape {shape}, expected ({_spell(axes, sizes)})")
        if 0 in shape:
            raise ValueError(f"{name} has shape {shape}: no dimension may be empty")


def require_masks(**masks: Tensor) -> None:
    """Check that masks are boolean: an integer mask would index instead of select.

    Args:
        masks: Name to mask.

    Raises:
        ValueError: A mask is not boolean.

    Example:
        >>> require_masks(row_mask=torch.ones(2, 3, dtype=torch.long))
        Traceback (most recent call last):
        ...
        ValueError: row_mask must be boolean, got torch.int64
    """
    for name, mask in masks.items():
        if mask.dtype != torch.bool:
            raise ValueError(f"{name} must be boolean, got {mask.dtype}")


def _spell(axes: list[str], sizes: dict[str, int]) -> str:
    known = {axis: f"{axis}={size}" for axis, size in sizes.items() if not axis.isdigit()}
    return ", ".join(known.get(axis, axis) for axis in axes)
