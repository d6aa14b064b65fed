"""``pooled``: the pooled vector alone, the strong simple baseline."""

from typing import ClassVar

from torch import Tensor, nn

from emo.config import PooledTerms
from emo.encoder import Encoder, Encoding
from emo.losses import cosine_loss, relational_loss
from emo.methods.base import Batch, Method, Signal, Terms


class PooledMethod(Method):
    """Cosine to the teacher's vector through a head, and relations between texts without one.

    The teacher's vectors are centred, since teacher spaces are anisotropic: uncentred, every
    target would point the same way.

    Args:
        settings: Weights of the terms.
        head: Linear map from the student's pooled states to the centred teacher space.
        vector_centre: ``(D_t,)`` mean teacher vector of the text set.
    """

    signals: ClassVar[frozenset[Signal]] = frozenset({"vectors"})
    vector_centre: Tensor

    def __init__(self, settings: PooledTerms, head: nn.Linear, vector_centre: Tensor) -> None:
        super().__init__()
        self.settings = settings
        self.head = head
        self.register_buffer("vector_centre", vector_centre)

    def forward(self, student: Encoder, batch: Batch) -> Terms:
        """Return the terms ``cosine`` and ``relational``."""
        encoding = student(batch["input_ids"], batch["mask"])
        return Terms(self.pooled_terms(encoding, batch), encoding.vectors)

    def pooled_terms(self, encoding: Encoding, batch: Batch) -> dict[str, Tensor]:
        """Return the terms on the pooled vector; those of weight zero are left out."""
        teacher = batch["teacher_vectors"] - self.vector_centre
        terms = {}
        if self.settings.cosine:
            terms["cosine"] = self.settings.cosine * cosine_loss(
                self.head(encoding.pooled), teacher
            )
        if self.settings.relational:
            terms["relational"] = self.settings.relational * relational_loss(
                encoding.vectors, teacher
            )
        return terms
