"""Contrastive task loss for corpora without labels.

Shapes: B batch, D width.
"""

import torch
from torch import Tensor
from torch.nn import functional

from emo.losses.cosine import unit_vectors
from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_shapes


@in_full_precision
def info_nce(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """Tell the second view of each text from the second views of the other texts.

    Formula:
        L = mean_b -log( exp(cos(x_b, y_b) / τ) / Σ_c exp(cos(x_b, y_c) / τ) )

    One direction, as in SimCSE: each first view looks for its second view among all second views
    of the batch, not the other way round. Two dropout passes over a text make its two views.

    Args:
        first: (B, D) first views.
        second: (B, D) second views, row by row of the same texts.
        temperature: τ > 0.

    Returns:
        Scalar; 0 with a graph for a single text, which has no negatives.

    Raises:
        ValueError: Shapes disagree or the temperature is not positive.

    Example:
        >>> views = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> round(info_nce(views, views, temperature=1.0).item(), 4)
        0.3133
    """
    require_shapes(first=(first, "B D"), second=(second, "B D"))
    if temperature <= 0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    logits = unit_vectors(first) @ unit_vectors(second).mT / temperature
    own = torch.arange(first.shape[0], device=first.device)
    return functional.cross_entropy(logits, own)
