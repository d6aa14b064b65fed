"""Which tokens of a batch count for terms on token states."""

from dataclasses import dataclass

from torch import Tensor

from emo.config_methods import TokenTerms
from emo.methods.base import Batch


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a batch that count, and the map between them.

    Attributes:
        student_mask: ``(B, S)`` bool.
        teacher_mask: ``(B, R)`` bool.
        pairs: ``(P, 3)``: text in batch, teacher column, student column.
    """

    student_mask: Tensor
    teacher_mask: Tensor
    pairs: Tensor


def counted_tokens(settings: TokenTerms, batch: Batch) -> Tokens:
    """Return the tokens that a method counts: those of the text, or special ones too."""
    counted = "text" if settings.tokens == "text" else "mask"
    return Tokens(batch[f"student_{counted}"], batch[f"teacher_{counted}"], batch["pairs"])
