"""EMO: terms on tokens beside those on the pooled vector, in the repaired and the paper's form.

Which form it is, and every step between the two, is said by the settings alone: see
``docs/method.md`` for the switches and their reasons.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from torch import Tensor

from emo.attention import Capture
from emo.config_methods import TokenTerms
from emo.encoder import Encoder, Encoding
from emo.losses import (
    TransportLoss,
    attention_cost,
    attention_loss,
    centred_states,
    cosine_cost,
    euclidean_cost,
    paper_student_masses,
    paper_teacher_masses,
    paper_transport_loss,
    student_masses,
    teacher_masses,
    transport_loss,
)
from emo.methods.base import Batch, Terms
from emo.methods.pooled import PooledMethod
from emo.methods.schedule import token_share
from emo.methods.space import Space
from emo.methods.task import TaskTerm

COSTS: Mapping[str, Callable[..., Tensor]] = MappingProxyType(
    {"cosine": cosine_cost, "euclidean": euclidean_cost, "attention": attention_cost}
)
SOLVERS: Mapping[str, Callable[..., TransportLoss]] = MappingProxyType(
    {"envelope": transport_loss, "unrolled": paper_transport_loss}
)


class EmoMethod(PooledMethod):
    """Pooled terms, a task term, attention CKA on mapped tokens, transport of token states.

    Args:
        settings: Weights and switches.
        space: Where student and teacher are compared.
        task: The task term.
        student_layers: Student layers whose attention is compared, 0-based.
    """

    settings: TokenTerms

    def __init__(
        self, settings: TokenTerms, space: Space, task: TaskTerm, student_layers: Sequence[int]
    ) -> None:
        super().__init__(settings, space)
        self.task = task
        self.student_layers = tuple(student_layers)

    def forward(self, student: Encoder, batch: Batch) -> Terms:
        """Return the weighted terms; those of weight zero are left out, with all that they cost."""
        settings = self.settings
        share = token_share(settings.token_schedule, self.progress)
        weights = {name: share * getattr(settings, name) for name in settings.token_weights}
        capture = None
        if weights["attention"]:
            capture = Capture(layers=self.student_layers, positions=batch["row_positions"])
        own_rows = settings.row_text == "original"
        encoding = student(batch["input_ids"], batch["mask"], capture if own_rows else None)
        terms: dict[str, Tensor] = {}
        counts: dict[str, Tensor] = {}
        if settings.task:
            terms["task"] = settings.task * self.task(student, encoding, batch)
        terms |= self.pooled_terms(encoding.vectors, batch)
        if weights["attention"]:
            row_pass = encoding
            if not own_rows:
                row_pass = student(batch["row_input_ids"], batch["row_input_mask"], capture)
            loss, skipped = self._attention(row_pass.rows, batch)
            terms["attention"] = weights["attention"] * loss
            counts |= skipped
        if weights["transport"]:
            loss, skipped = self._transport(student, encoding, batch)
            terms["transport"] = weights["transport"] * loss
            counts |= skipped
        return Terms(terms, encoding.vectors, counts)

    def _attention(self, student_rows: Tensor, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        result = attention_loss(
            student_rows,
            batch["teacher_rows"],
            batch["row_mask"],
            self.settings.cka,
            self.settings.cka_reduction,
        )
        return result.loss, {"attention_skipped": result.texts_skipped}

    def _transport(
        self, student: Encoder, encoding: Encoding, batch: Batch
    ) -> tuple[Tensor, dict[str, Tensor]]:
        settings = self.settings
        sides = self.space.tokens(student, encoding.states, batch["teacher_states"])
        counted = "text" if settings.tokens == "text" else "mask"
        student_mask, teacher_mask = batch[f"student_{counted}"], batch[f"teacher_{counted}"]
        student_states, teacher_states = sides.student, sides.teacher
        if settings.centred:
            student_states = centred_states(student_states, student_mask, sides.student_centre)
            teacher_states = centred_states(teacher_states, teacher_mask, sides.teacher_centre)
        cost = COSTS[settings.cost](student_states, teacher_states, student_mask, teacher_mask)
        result = SOLVERS[settings.solver](
            cost,
            *self._masses(batch, student_mask, teacher_mask),
            epsilon=settings.epsilon,
            rounds=settings.rounds,
        )
        moved = (~result.empty).sum()
        counts = {
            "transport_skipped": result.empty.sum(),
            "transport_unconverged": (~result.converged).sum(),
        }
        return result.loss.sum() / moved.clamp(min=1), counts

    def _masses(
        self, batch: Batch, student_mask: Tensor, teacher_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return student and teacher masses."""
        importance, pairs = batch["teacher_importance"], batch["pairs"]
        if self.settings.masses == "softmax":
            teacher_mass = paper_teacher_masses(importance, teacher_mask)
            student_mass = paper_student_masses(teacher_mass, teacher_mask, pairs, student_mask)
        else:
            teacher_mass = teacher_masses(importance, teacher_mask, self.settings.mass_power)
            student_mass = student_masses(teacher_mass, pairs, student_mask, self.settings.floor)
        return student_mass, teacher_mass
