"""``pooled``: the pooled vector alone, the strong simple baseline."""

from torch import Tensor

from emo.config import PooledTerms
from emo.encoder import Encoder
from emo.losses import cosine_loss, relational_loss
from emo.methods.base import Batch, Method, Signal, Terms


class PooledMethod(Method):
    """Cosine to the teacher's vector, and the relations between the texts of a batch.

    The student has a head into the teacher's space, which stays part of it. Both sides are centred
    by the teacher's mean, since teacher spaces are anisotropic: uncentred, every target would
    point nearly the same way.

    Args:
        settings: Weights of the terms.
        vector_centre: ``(D_t,)`` mean teacher vector of the text set.
    """

    signals: frozenset[Signal] = frozenset({"vectors"})
    vector_centre: Tensor

    def __init__(self, settings: PooledTerms, vector_centre: Tensor) -> None:
        super().__init__()
        self.settings = settings
        self.register_buffer("vector_centre", vector_centre)

    def forward(self, student: Encoder, batch: Batch) -> Terms:
        """Return the terms ``cosine`` and ``relational``."""
        vectors = student(batch["input_ids"], batch["mask"]).vectors
        return Terms(self.pooled_terms(vectors, batch), vectors)

    def pooled_terms(self, vectors: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Return the terms on the student's vectors; those of weight zero are left out."""
        student = vectors - self.vector_centre
        teacher = batch["teacher_vectors"] - self.vector_centre
        terms = {}
        if self.settings.cosine:
            terms["cosine"] = self.settings.cosine * cosine_loss(student, teacher)
        if self.settings.relational:
            terms["relational"] = self.settings.relational * relational_loss(student, teacher)
        return terms
