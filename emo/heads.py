"""Heads that predict from an embedding, trained beside a model and left out of it.

Shapes: B texts or pairs, D width.
"""

import torch
from torch import Tensor, nn


class ScoreHead(nn.Module):
    """The published head for similarity scores: half the width, tanh, one number.

    Args:
        width: D.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width // 2)
        self.score = nn.Linear(width // 2, 1)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the logits ``(B,)`` of vectors ``(B, D)``."""
        logits: Tensor = self.score(torch.tanh(self.dense(vectors))).squeeze(-1)
        return logits
