"""``pooled``: the pooled vector, and the task: the strong simple baseline."""

from torch import Tensor

from emo.config_pooled import PooledTerms
from emo.encoder import Encoder, Encoding
from emo.losses import cosine_loss, relational_loss
from emo.methods.base import Batch, Method, Terms
from emo.methods.space import Space
from emo.methods.task import LabelledTask, TaskTerm


class PooledMethod(Method):
    """Cosine to the teacher's vector, the relations between the texts of a batch, and a task.

    Both sides are centred, since teacher spaces are anisotropic: uncentred, every target would
    point nearly the same way.

    Args:
        settings: Weights of the terms.
        space: Where student and teacher are compared.
        task: The task term.
    """

    def __init__(self, settings: PooledTerms, space: Space, task: TaskTerm) -> None:
        super().__init__()
        self.settings = settings
        self.space = space
        self.task = task

    def forward(self, student: Encoder, batch: Batch) -> Terms:
        """Return the weighted terms; those of weight zero are left out."""
        encoding = student(batch["input_ids"], batch["mask"])
        terms = self.task_terms(student, encoding, batch)
        terms |= self.pooled_terms(encoding.vectors, batch)
        return Terms(terms, encoding.vectors)

    def task_terms(self, student: Encoder, encoding: Encoding, batch: Batch) -> dict[str, Tensor]:
        """Return the terms ``task`` and ``logits``; those of weight zero are left out."""
        settings = self.settings
        terms = {}
        if settings.task:
            terms["task"] = settings.task * self.task(student, encoding, batch)
        if settings.logits:
            assert isinstance(self.task, LabelledTask)  # build_method saw to it
            distance = self.task.imitation(encoding, batch, settings.logit_temperature)
            terms["logits"] = settings.logits * distance
        return terms

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
