"""The task term: what a student learns besides its teacher.

Without labels it is InfoNCE over two dropout views, as in later work on EMO. With labels it is the
published one: a head on the [CLS] state, which is no part of the model that is saved.
"""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from emo.config_methods import Family
from emo.encoder import Encoder, Encoding
from emo.heads import ScoreHead
from emo.losses import class_loss, info_nce, logit_loss, score_loss, scores_of
from emo.methods.base import Batch


class TaskTerm(nn.Module, ABC):
    """A loss of a student's pass over a batch, not yet weighted."""

    @abstractmethod
    def forward(self, student: Encoder, encoding: Encoding, batch: Batch) -> Tensor:
        """Return the loss; ``encoding`` is the student's pass over the batch."""


class ContrastiveTask(TaskTerm):
    """InfoNCE between the pass that was made and a second one with other dropout.

    Args:
        temperature: Of InfoNCE.
    """

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self._temperature = temperature

    def forward(self, student: Encoder, encoding: Encoding, batch: Batch) -> Tensor:
        """Make the second pass and compare."""
        second = student(batch["input_ids"], batch["mask"])
        return info_nce(encoding.vectors, second.vectors, self._temperature)


class LabelledTask(TaskTerm):
    """A head on the [CLS] state, learned from labels and from the head of a tuned teacher."""

    @abstractmethod
    def logits(self, encoding: Encoding) -> Tensor:
        """Return what the head says of each text or pair."""

    @abstractmethod
    def imitation(self, encoding: Encoding, batch: Batch, temperature: float) -> Tensor:
        """Return the distance to what the teacher's head says."""


class ClassTask(LabelledTask):
    """Cross-entropy of a classifier on the [CLS] state: dense layer, tanh, classes.

    Args:
        width: D_s.
        classes: Number of classes.
    """

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.classes = nn.Linear(width, classes)

    def logits(self, encoding: Encoding) -> Tensor:
        """Return the logits of the classes, ``(B, C)``."""
        logits: Tensor = self.classes(torch.tanh(self.dense(_first(encoding))))
        return logits

    def forward(self, student: Encoder, encoding: Encoding, batch: Batch) -> Tensor:
        """Classify the texts, or the sentence pairs, of the batch."""
        return class_loss(self.logits(encoding), batch["labels"])

    def imitation(self, encoding: Encoding, batch: Batch, temperature: float) -> Tensor:
        """Compare the class probabilities of student and teacher."""
        return logit_loss(self.logits(encoding), batch["teacher_logits"], temperature)


class ScoreTask(LabelledTask):
    """Squared error of a similarity score from 0 to 5 of sentence pairs.

    Args:
        width: D_s.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.head = ScoreHead(width)

    def logits(self, encoding: Encoding) -> Tensor:
        """Return the logits, which rise with the score, ``(B,)``."""
        logits: Tensor = self.head(_first(encoding))
        return logits

    def forward(self, student: Encoder, encoding: Encoding, batch: Batch) -> Tensor:
        """Score the sentence pairs of the batch."""
        return score_loss(self.logits(encoding), batch["labels"])

    def imitation(self, encoding: Encoding, batch: Batch, temperature: float) -> Tensor:
        """Compare the scores of student and teacher; a score has no temperature."""
        return score_loss(self.logits(encoding), scores_of(batch["teacher_logits"]))


def build_task(family: Family, width: int, classes: int) -> LabelledTask:
    """Return the head of a family.

    Args:
        family: Family of the task.
        width: D_s.
        classes: Number of classes; not read for sts.
    """
    return ScoreTask(width) if family == "sts" else ClassTask(width, classes)


def _first(encoding: Encoding) -> Tensor:
    """Return the states of the first token, [CLS] in every student with such a head."""
    return encoding.states[:, 0]
