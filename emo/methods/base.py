"""What every method is: a module that turns a batch into weighted loss terms.

Tensors of a batch, by name. Shapes: B texts (or sentence pairs, read as one sequence), S and R
student and teacher tokens, D_s and D_t widths, m rows, k layers, P pairs of tokens, C classes.
Padding is on the right.

==========================  ===============  =========================================
always
``input_ids``               (B, S)           student ids
``mask``                    (B, S) bool      all that the student reads
``student_mask``            (B, S) bool      student tokens but the prompt's
``student_text``            (B, S) bool      of these, tokens that are not special
``teacher_vectors``         (B, D_t)         final teacher embeddings
with a term on token states
``teacher_states``          (B, R, D_t)      teacher token states
``teacher_mask``            (B, R) bool      teacher tokens but the prompt's
``teacher_text``            (B, R) bool      teacher tokens that are not special
``teacher_importance``      (B, R)           attention received
``pairs``                   (P, 3)           (text in batch, teacher column, student column)
with an attention term
``row_mask``                (B, m) bool      rows that exist
``row_positions``           (B, m)           student columns of the rows
``teacher_rows``            (k, B, m, R)     teacher attention rows
``row_input_ids``           (B, S)           what the student reads for its rows, where
``row_input_mask``          (B, S) bool      that is not the text itself
labelled batches
``labels``                  (B,)             class numbers (int64) or scores (float)
``teacher_logits``          (B, C) or (B,)   of the teacher's head, with a logit term
==========================  ===============  =========================================
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from emo.encoder import Encoder

Batch = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Terms:
    """Loss terms of a batch.

    Attributes:
        losses: Weighted scalar terms by name; the loss is their sum.
        vectors: The student's embeddings of the batch, ``(B, D_s)``.
        counts: What was left out of a term, by reason.
    """

    losses: dict[str, Tensor]
    vectors: Tensor
    counts: dict[str, Tensor] = field(default_factory=dict)

    def total(self) -> Tensor:
        """Return the sum of the terms."""
        return torch.stack(list(self.losses.values())).sum()


class Method(nn.Module, ABC):
    """A distillation method; parameters of its own are projections, dropped after training.

    Attributes:
        progress: Share of the training's steps that are done; whoever trains sets it before each.
        task: The task term, whose head, if it has one, is kept beside the student.
    """

    progress: float = 0.0
    task: nn.Module

    @abstractmethod
    def forward(self, student: Encoder, batch: Batch) -> Terms:
        """Run the student on a batch and return the weighted terms."""
