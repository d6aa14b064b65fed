"""What a pass is asked to give of its attention.

Shapes: ``B`` texts, ``S`` columns of the padded batch, ``m`` rows a text, ``Q`` sets of rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Capture:
    """What to take out of the attention of a pass.

    Attributes:
        layers: 0-based layers whose rows are taken, in this order.
        positions: ``(B, m)`` int64, query positions (columns of the padded batch) whose rows are
            taken; needed with ``layers``.
        queries: ``(Q, B, S)`` bool, sets of query rows whose attention in the last layer is summed
            per key (importance), or None.

    Raises:
        ValueError: Layers and positions do not come together, or a tensor has another type.

    Example:
        >>> Capture(layers=[1], positions=torch.tensor([[0, 2]])).layers
        [1]
    """

    layers: Sequence[int] = ()
    positions: Tensor | None = None
    queries: Tensor | None = None

    def __post_init__(self) -> None:
        if bool(self.layers) != (self.positions is not None):
            raise ValueError("layers and positions of a capture must be given together")
        if self.positions is not None and self.positions.dtype != torch.int64:
            raise ValueError(f"positions must be int64, got {self.positions.dtype}")
        if self.queries is not None and self.queries.dtype != torch.bool:
            raise ValueError(f"queries must be bool, got {self.queries.dtype}")

    def require_fit(self, mask: Tensor, layers: int) -> None:
        """Check the capture against a batch and a model.

        Args:
            mask: The batch's mask, ``(B, S)``.
            layers: Layers of the model.

        Raises:
            ValueError: A shape or a layer does not fit.
        """
        texts, length = mask.shape
        missing = [layer for layer in self.layers if not 0 <= layer < layers]
        if missing:
            raise ValueError(f"no layers {missing} in a model of {layers}, counted from 0")
        if self.positions is not None:
            shape = tuple(self.positions.shape)
            if len(shape) != 2 or shape[0] != texts:
                raise ValueError(f"positions has shape {shape}, expected ({texts}, m)")
        if self.queries is not None:
            shape = tuple(self.queries.shape)
            if len(shape) != 3 or shape[1:] != (texts, length):
                raise ValueError(f"queries has shape {shape}, expected (Q, {texts}, {length})")
