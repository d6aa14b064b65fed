"""The loss of annotated similarity on embeddings (Reimers and Gurevych 2019).

Shapes: B pairs, D width.
"""

from torch import Tensor

from emo.losses.cosine import unit_vectors
from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_shapes
from emo.losses.task import HIGHEST_SCORE, require_range


@in_full_precision
def similarity_loss(first: Tensor, second: Tensor, scores: Tensor) -> Tensor:
    """Compute the squared error of the cosine of two embeddings against their similarity.

    Formula:
        L = mean_b (cos(u_b, v_b) - y_b / 5)²

    Args:
        first: (B, D) embeddings of the first texts.
        second: (B, D) embeddings of the second texts.
        scores: (B,) annotated scores, 0 to 5.

    Returns:
        Scalar.

    Raises:
        ValueError: Shapes disagree, or a score is not a number from 0 to 5.

    Example:
        >>> import torch
        >>> first, second = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 2.0]])
        >>> similarity_loss(first, second, torch.tensor([2.5])).item()
        0.25
    """
    require_shapes(first=(first, "B D"), second=(second, "B D"), scores=(scores, "B"))
    require_range("scores", scores, 0, HIGHEST_SCORE)
    cosine = (unit_vectors(first) * unit_vectors(second)).sum(dim=-1)
    return (cosine - scores / HIGHEST_SCORE).square().mean()
