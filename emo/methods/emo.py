"""``emo``: the repaired form of EMO, the default.

Against the paper: token occurrences of the original text are mapped; importance counts text tokens
only; masses are plain shares; the head stands on the student's side; the cost is the cosine of
centred states; the plan is found without gradient; CKA is debiased and averaged; and a term on the
pooled vector leads.
"""

from torch import Tensor

from emo.attention import Capture
from emo.config import EmoSettings
from emo.encoder import Encoder, Encoding
from emo.losses import (
    cka_loss,
    cosine_cost,
    student_masses,
    teacher_masses,
    transport_loss,
)
from emo.methods.base import Batch, Signal, Terms, last_layers
from emo.methods.pooled import PooledMethod


class EmoMethod(PooledMethod):
    """Pooled terms, attention CKA on the most important mapped tokens, transport of states.

    Args:
        settings: Weights and the knobs of each term.
        vector_centre: ``(D_t,)`` mean teacher vector of the text set.
        state_centre: ``(D_t,)`` mean teacher token state of the text set.
    """

    settings: EmoSettings
    state_centre: Tensor

    def __init__(self, settings: EmoSettings, vector_centre: Tensor, state_centre: Tensor) -> None:
        super().__init__(settings, vector_centre)
        self.register_buffer("state_centre", state_centre)
        signals: set[Signal] = {"vectors"}
        if settings.transport:
            signals.add("tokens")
        if settings.attention:
            signals.add("rows")
        self.signals = frozenset(signals)

    def forward(self, student: Encoder, batch: Batch) -> Terms:
        """Return the terms ``cosine``, ``relational``, ``attention`` and ``transport``.

        Terms of weight zero are left out, and so is what they cost: without the attention term
        the student returns no attention.
        """
        capture = None
        if self.settings.attention:
            layers = last_layers(student, self.settings.layers)
            capture = Capture(layers, batch["row_positions"])
        encoding = student(batch["input_ids"], batch["mask"], capture)
        terms = self.pooled_terms(encoding.vectors, batch)
        counts: dict[str, Tensor] = {}
        if self.settings.attention:
            terms["attention"], skipped = self._attention(encoding, batch)
            counts |= skipped
        if self.settings.transport:
            terms["transport"], skipped = self._transport(student.head(encoding.states), batch)
            counts |= skipped
        return Terms(terms, encoding.vectors, counts)

    def _attention(self, encoding: Encoding, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        student_rows = encoding.rows
        row_mask = batch["row_mask"].repeat(len(student_rows), 1)
        result = cka_loss(
            student_rows.flatten(0, 1),
            batch["teacher_rows"].flatten(0, 1),
            row_mask,
            self.settings.cka,
        )
        skipped = result.texts_skipped / len(student_rows)
        return self.settings.attention * result.loss, {"attention_skipped": skipped}

    def _transport(self, student_states: Tensor, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        teacher_mass = teacher_masses(batch["teacher_importance"], batch["teacher_text"])
        student_mass = student_masses(
            teacher_mass, batch["pairs"], batch["student_text"], self.settings.floor
        )
        # The head maps to the scale of the teacher's vectors, so their mean centres the student. A
        # mean over the batch would make a text's loss depend on its neighbours.
        cost = cosine_cost(
            student_states,
            batch["teacher_states"],
            batch["student_text"],
            batch["teacher_text"],
            student_centre=self.vector_centre,
            teacher_centre=self.state_centre,
        )
        result = transport_loss(
            cost, student_mass, teacher_mass, self.settings.epsilon, self.settings.rounds
        )
        moved = (~result.empty).sum()
        counts = {
            "transport_skipped": result.empty.sum(),
            "transport_unconverged": (~result.converged).sum(),
        }
        return self.settings.transport * result.loss.sum() / moved.clamp(min=1), counts
