"""What a teacher is tuned for: a loss on its embeddings, and what a validation score reads.

Heads read the direction of an embedding and not its length, since that is what a student meets and
what the frozen evaluation compares. A vector is scaled to a length of √D, so that its numbers are
about 1 whatever model they are of, and a head learns at the same pace.

Shapes: B rows, D width of an embedding, C classes; ``vectors`` are ``(B, D)``, or ``(2 B, D)``
where the texts of a row are read apart: the first of each, then the second of each.
"""

import math
from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from emo.config_methods import Family
from emo.heads import ScoreHead
from emo.losses import class_loss, score_loss, similarity_loss
from emo.losses.cosine import unit_vectors

Reading = Literal["apart", "joint"]

HEAD_FILE = "head.safetensors"
"""The weights of an objective's head, beside the record of the tuning."""


class Objective(nn.Module, ABC):
    """A loss on embeddings with the head that it needs, which is left out of the tuned model.

    Attributes:
        reads_head: Whether the validation score reads the head, which is random before tuning.
    """

    reads_head = True

    @abstractmethod
    def forward(self, vectors: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of a batch."""

    @abstractmethod
    def predict(self, vectors: Tensor) -> Tensor:
        """Return what the family's main metric compares with the targets, ``(B,)``."""


class Classes(Objective):
    """Cross-entropy of a linear classifier: tuned embeddings can be told apart by planes.

    Args:
        width: D.
        classes: C.
    """

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.classes = nn.Linear(width, classes)

    def forward(self, vectors: Tensor, targets: Tensor) -> Tensor:
        """Classify."""
        return class_loss(self.logits(vectors), targets)

    def predict(self, vectors: Tensor) -> Tensor:
        """Return the likeliest class."""
        return self.logits(vectors).argmax(dim=-1)

    def logits(self, vectors: Tensor) -> Tensor:
        """Return the logits of the classes, ``(B, C)``."""
        logits: Tensor = self.classes(_scaled(vectors))
        return logits


class JointPairs(Classes):
    """The published form for pairs: cross-entropy on the embedding of the joint sequence.

    Args:
        width: D.
    """

    def __init__(self, width: int) -> None:
        super().__init__(width, 2)

    def predict(self, vectors: Tensor) -> Tensor:
        """Return how much likelier the label 1 is."""
        unlike, like = self.logits(vectors).unbind(dim=-1)
        return like - unlike


class JointScores(Objective):
    """The published form for similarity: squared error of a head on the joint sequence.

    Args:
        width: D.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.head = ScoreHead(width)

    def forward(self, vectors: Tensor, targets: Tensor) -> Tensor:
        """Score."""
        return score_loss(self.logits(vectors), targets)

    def predict(self, vectors: Tensor) -> Tensor:
        """Return the logit, which rises with the score."""
        return self.logits(vectors)

    def logits(self, vectors: Tensor) -> Tensor:
        """Return the logits of the scores, ``(B,)``."""
        logits: Tensor = self.head(_scaled(vectors))
        return logits


class PairsApart(Objective):
    """Cross-entropy over [u, v, |u - v|] of two embeddings (Reimers and Gurevych 2019).

    Args:
        width: D.
    """

    reads_head = False

    def __init__(self, width: int) -> None:
        super().__init__()
        self.classes = nn.Linear(3 * width, 2)

    def forward(self, vectors: Tensor, targets: Tensor) -> Tensor:
        """Classify."""
        first, second = _scaled(vectors).chunk(2)
        features = torch.cat([first, second, (first - second).abs()], dim=-1)
        return class_loss(self.classes(features), targets)

    def predict(self, vectors: Tensor) -> Tensor:
        """Return the cosine, by which pairs are judged."""
        return _cosine(vectors)


class ScoresApart(Objective):
    """Squared error of the cosine of two embeddings; it needs no head."""

    reads_head = False

    def forward(self, vectors: Tensor, targets: Tensor) -> Tensor:
        """Compare."""
        first, second = vectors.chunk(2)
        return similarity_loss(first, second, targets)

    def predict(self, vectors: Tensor) -> Tensor:
        """Return the cosine."""
        return _cosine(vectors)


def build_objective(family: Family, reading: Reading, width: int, classes: int) -> Objective:
    """Return what a family is tuned for.

    Args:
        family: Family of the task.
        reading: How the two texts of a row are read.
        width: D.
        classes: C; read for classification.
    """
    if family == "classification":
        return Classes(width, classes)
    if family == "pairs":
        return JointPairs(width) if reading == "joint" else PairsApart(width)
    return JointScores(width) if reading == "joint" else ScoresApart()


def _scaled(vectors: Tensor) -> Tensor:
    return unit_vectors(vectors) * math.sqrt(vectors.shape[-1])


def _cosine(vectors: Tensor) -> Tensor:
    first, second = unit_vectors(vectors).chunk(2)
    return (first * second).sum(dim=-1)
