"""``emo-paper``: EMO as its authors ran it, oddities kept on purpose.

Source: EMO (EMNLP 2025) and the authors' working code as far as it is known. Set to the embedding
setting of later work: the task term is InfoNCE over two dropout views of the student. Attention is
compared on the paper's normalised text, which costs one more student pass.
"""

from torch import Tensor, nn

from emo.attention import Capture
from emo.config import EmoPaperSettings
from emo.encoder import Encoder, Encoding
from emo.losses import (
    attention_cost,
    info_nce,
    paper_cka_loss,
    paper_student_masses,
    paper_teacher_masses,
    paper_transport_loss,
)
from emo.methods.base import Batch, Method, Signal, Terms, last_layers


class EmoPaperMethod(Method):
    """Loss (1 - r) L_task + r (0.1 L_IRA + L_OT), with the projection on the teacher's side.

    Args:
        settings: Weights and the knobs of each term.
        layers: How many of the last student layers are compared.
        projection: Linear map from teacher to student states, trained at its own rate.
    """

    signals: frozenset[Signal] = frozenset({"tokens", "rows"})

    def __init__(self, settings: EmoPaperSettings, layers: int, projection: nn.Linear) -> None:
        super().__init__()
        self.settings = settings
        self.layers = layers
        self.projection = projection

    def forward(self, student: Encoder, batch: Batch) -> Terms:
        """Return the terms ``task``, ``attention`` and ``transport``."""
        first = student(batch["input_ids"], batch["mask"])
        second = student(batch["input_ids"], batch["mask"])
        rate = self.settings.kd_rate
        task = info_nce(first.vectors, second.vectors, self.settings.temperature)
        terms = {
            "task": (1.0 - rate) * task,
            "attention": rate * self.settings.attention * self._attention(student, batch),
            "transport": rate * self.settings.transport * self._transport(first, batch),
        }
        constant = (batch["row_mask"].sum(dim=1) < 2).sum()
        return Terms(terms, first.vectors, {"attention_constant": constant})

    def _attention(self, student: Encoder, batch: Batch) -> Tensor:
        capture = Capture(last_layers(student, self.layers), batch["row_positions"])
        encoding = student(batch["row_input_ids"], batch["row_input_mask"], capture)
        return paper_cka_loss(
            encoding.rows,
            batch["teacher_rows"],
            batch["row_mask"],
            self.settings.batch_scale,
        )

    def _transport(self, encoding: Encoding, batch: Batch) -> Tensor:
        teacher_mass = paper_teacher_masses(batch["teacher_importance"], batch["teacher_mask"])
        student_mass = paper_student_masses(
            teacher_mass, batch["teacher_mask"], batch["pairs"], batch["student_mask"]
        )
        cost = attention_cost(
            encoding.states,
            self.projection(batch["teacher_states"]),
            batch["student_mask"],
            batch["teacher_mask"],
        )
        return paper_transport_loss(cost, student_mass, teacher_mass).mean()
