"""Are the teacher's answers finite, and do different texts get different ones?

Shapes: ``N`` texts, ``D`` width.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from emo.doctor.finding import Finding
from emo.doctor.subject import Subject
from emo.losses import mean_cosine

NAME = "vectors"

MOST_ALIKE = 0.999
LEAST_RANK = 2.0


def check_vectors(subject: Subject) -> Finding:
    """Look for numbers that are not finite, and for vectors that are all the same."""
    said = subject.together[8]
    broken = [
        text
        for text, vector, states in zip(subject.texts, said.vectors, said.states, strict=True)
        if not (vector.isfinite().all() and states.isfinite().all())
    ]
    if broken:
        return Finding(
            NAME,
            "failed",
            f"{len(broken)} of {len(subject.texts)} texts have numbers that are not finite, the "
            f"first {broken[0][:40]!r}",
            {"texts not finite": len(broken)},
            "set the teacher's `dtype` to float32; if it is, its weights are damaged: prepare it "
            "anew",
        )
    alike, rank = mean_cosine(said.vectors), effective_rank(said.vectors)
    measured = {"mean cosine": alike, "effective rank": rank, "texts": len(subject.texts)}
    if alike > MOST_ALIKE or rank < LEAST_RANK:
        return Finding(
            NAME,
            "failed",
            "all texts have nearly the same vector, so there is nothing to learn from it",
            measured,
            "check that weights, `pooling`, `end_token` and `prompt` are those the teacher was "
            "trained with",
        )
    return Finding(NAME, "passed", "different texts have different vectors", measured)


def effective_rank(vectors: Tensor) -> float:
    """Return how many directions the rows of ``(N, D)`` fill.

    Formula:
        exp(-Σ p_i log p_i), p = singular values of the rows of length 1, divided by their sum

    Source:
        Roy and Vetterli, "The effective rank: a measure of effective dimensionality", 2007.

    Example:
        >>> round(effective_rank(torch.eye(3)), 6)
        3.0
    """
    values = torch.linalg.svdvals(normalize(vectors.double(), dim=1))
    return float(torch.special.entr(values / values.sum()).sum().exp())
