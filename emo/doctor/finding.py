"""What a check of the doctor found, and how near two answers must be."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

Status = Literal["passed", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check.

    Attributes:
        name: Of the check.
        status: A warning is told and stops nothing.
        meaning: What was seen, in a sentence.
        measured: The numbers behind it.
        remedy: What to do, empty where nothing is.
    """

    name: str
    status: Status
    meaning: str
    measured: Mapping[str, float | int | str] = field(default_factory=dict)
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far answers may be apart that ought to be the same.

    Attributes:
        difference: Largest entry of the difference, as a share of the vector's length.
        cosine: Least cosine.
        attention: Largest difference of the attention that a token gets from a query.
    """

    difference: float
    cosine: float
    attention: float


TOLERANCES = {
    "float32": Tolerance(difference=1e-4, cosine=0.9999, attention=1e-5),
    "float16": Tolerance(difference=1e-2, cosine=0.999, attention=1e-2),
    "bfloat16": Tolerance(difference=1e-2, cosine=0.999, attention=1e-2),
}
"""By the precision of the pass. Faults of padding or masks are far larger, rounding is smaller."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How far rows of two tables are apart.

    Attributes:
        largest: Largest entry of the difference, as a share of the row's length.
        cosine: Least cosine of a row with its counterpart.
    """

    largest: float
    cosine: float

    @classmethod
    def between(cls, rows: Tensor, others: Tensor) -> "Difference":
        """Compare two ``(N, D)`` tables row by row; NaN in either comes out as NaN.

        Example:
            >>> Difference.between(torch.eye(2), torch.eye(2))
            Difference(largest=0.0, cosine=1.0)
        """
        rows, others = rows.double(), others.double()
        length = rows.norm(dim=1).clamp(min=torch.finfo(torch.float64).tiny)
        # A decoder may give its padding token, met in a text, the state 0: without a direction.
        nothing = (rows == 0).all(dim=1) & (others == 0).all(dim=1)
        cosines = cosine_similarity(rows, others, dim=1).masked_fill(nothing, 1.0)
        return cls(
            largest=float(((rows - others).abs().amax(dim=1) / length).max()),
            cosine=float(cosines.min()),
        )

    def within(self, tolerance: Tolerance) -> bool:
        """Tell whether the tables are the same but for rounding; NaN never is."""
        return self.largest <= tolerance.difference and self.cosine >= tolerance.cosine
