"""Distance between the class probabilities of student and teacher.

Shapes: B batch, C classes.
"""

from torch import Tensor
from torch.nn import functional

from emo.losses.precision import in_full_precision
from emo.losses.shapes import require_shapes


@in_full_precision
def logit_loss(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """Compute the Kullback-Leibler divergence of the student's class probabilities.

    Formula:
        L = τ² mean_b KL(softmax(t_b / τ) ‖ softmax(s_b / τ))

    The factor keeps the size of the gradient when the temperature τ changes (Hinton et al. 2015).

    Args:
        student: (B, C) logits.
        teacher: (B, C) logits.
        temperature: τ, above 0; the higher, the more the unlikely classes count.

    Returns:
        Scalar.

    Raises:
        ValueError: Shapes disagree, or the temperature is not above 0.

    Example:
        >>> import torch
        >>> logits = torch.tensor([[3.0, 1.0]])
        >>> logit_loss(logits + 1.0, logits, 2.0).item()
        0.0
    """
    require_shapes(student=(student, "B C"), teacher=(teacher, "B C"))
    if not temperature > 0:
        raise ValueError(f"the temperature must be above 0, got {temperature}")
    divergence = functional.kl_div(
        functional.log_softmax(student / temperature, dim=-1),
        functional.log_softmax(teacher / temperature, dim=-1),
        reduction="batchmean",
        log_target=True,
    )
    return temperature**2 * divergence
