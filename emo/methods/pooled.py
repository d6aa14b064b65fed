"""``pooled``: the pooled vector alone, the strong simple baseline."""

from torch import Tensor

from emo.config_methods import PooledTerms
from emo.encoder import Encoder
from emo.losses import cosine_loss, relational_loss
from emo.methods.base import Batch, Method, Terms
from emo.methods.space import Space


class PooledMethod(Method):
    """Cosine to the teacher's vector, and the relations between the texts of a batch.

    Both sides are centred, since teacher spaces are anisotropic: uncentred, every target would
    point nearly the same way.

    Args:
        settings: Weights of the terms.
        space: Where student and teacher are compared.
    """

    def __init__(self, settings: PooledTerms, space: Space) -> None:
        super().__init__()
        self.settings = settings
        self.space = space

    def forward(self, student: Encoder, batch: Batch) -> Terms:
        """Return the terms ``cosine`` and ``relational``."""
        vectors = student(batch["input_ids"], batch["mask"]).vectors
        return Terms(self.pooled_terms(vectors, batch), vectors)

    def pooled_terms(self, vectors: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Return the terms on the student's vectors; those of weight zero are left out."""
        student, mapped_teacher = self.space.vectors(vectors, batch["teacher_vectors"])
        terms = {}
        if self.settings.cosine:
            terms["cosine"] = self.settings.cosine * cosine_loss(student, mapped_teacher)
        if self.settings.relational:
            # Similarities within one space need no map, and a learned one could make them easy.
            teacher = batch["teacher_vectors"] - self.space.vector_centre
            terms["relational"] = self.settings.relational * relational_loss(student, teacher)
        return terms
