"""Unit vectors, the base of every cosine in the losses, and how alike vectors are."""

from typing import Final

import torch
from torch import Tensor

MINIMUM_NORM: Final = 1e-6
"""Shorter vectors count as zero: they have cosine 0 with everything and no gradient."""


def unit_vectors(states: Tensor) -> Tensor:
    """Divide vectors by their norm, and replace those shorter than `MINIMUM_NORM` by zero.

    A clamped norm would give a zero vector a gradient of 1 / `MINIMUM_NORM`, which overflows in
    float16 on its way back to the model.

    Args:
        states: (..., D).

    Returns:
        (..., D), vectors of norm 1 or 0.

    Example:
        >>> unit_vectors(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    norm = torch.linalg.vector_norm(states, dim=-1, keepdim=True)
    short = norm < MINIMUM_NORM
    return states.masked_fill(short, 0.0) / torch.where(short, 1.0, norm)


def mean_cosine(vectors: Tensor) -> float:
    """Return the mean cosine between different vectors: 0 in all directions, 1 collapsed.

    Args:
        vectors: (B, D).

    Returns:
        The mean, computed in float64; 0 for a single vector.

    Example:
        >>> mean_cosine(torch.eye(3))
        0.0
    """
    count = vectors.shape[0]
    if count < 2:
        return 0.0
    unit = torch.nn.functional.normalize(vectors.double(), dim=-1)
    together = unit.sum(dim=0).square().sum() - unit.square().sum()
    return float(together / (count * (count - 1)))
