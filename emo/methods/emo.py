"""EMO: terms on tokens beside those on the pooled vector, in the repaired and the paper's form.

Which form it is, and every step between the two, is said by the settings alone: see
``docs/method.md`` for the switches and their reasons.
"""

from collections.abc import Sequence

from torch import Tensor

from emo.attention import Capture
from emo.config_methods import TokenTerms
from emo.encoder import Encoder
from emo.losses import CkaLoss, attention_loss
from emo.methods.base import Batch, Terms
from emo.methods.pooled import PooledMethod
from emo.methods.schedule import token_share
from emo.methods.space import Space
from emo.methods.state_terms import StateTerms
from emo.methods.task import TaskTerm


class EmoMethod(PooledMethod):
    """Pooled terms, a task term, attention CKA on mapped tokens, terms on token states.

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
        super().__init__(settings, space, task)
        self.student_layers = tuple(student_layers)
        self._state_terms = StateTerms(settings, space)

    def forward(self, student: Encoder, batch: Batch) -> Terms:
        """Return the weighted terms; those of weight zero are left out, with all that they cost."""
        settings = self.settings
        share = token_share(settings.token_schedule, self.progress)
        weights = {name: share * getattr(settings, name) for name in settings.token_weights}
        capture = None
        if weights["attention"]:
            capture = Capture(layers=self.student_layers, positions=batch["row_positions"])
        own_rows = settings.row_text == "original"
        compared = any(weights[name] for name in settings.state_weights)
        encoding = student(
            batch["input_ids"],
            batch["mask"],
            capture if own_rows else None,
            (settings.state_layers or ()) if compared else (),
        )
        counts: dict[str, Tensor] = {}
        terms = self.task_terms(student, encoding, batch)
        terms |= self.pooled_terms(encoding.vectors, batch)
        if weights["attention"]:
            row_pass = encoding
            if not own_rows:
                row_pass = student(batch["row_input_ids"], batch["row_input_mask"], capture)
            result = self._attention(row_pass.rows, batch)
            terms["attention"] = weights["attention"] * result.loss
            counts["attention_skipped"] = result.texts_skipped
        if compared:
            losses, skipped = self._state_terms(student, encoding, batch, weights)
            terms |= losses
            counts |= skipped
        return Terms(terms, encoding.vectors, counts)

    def _attention(self, student_rows: Tensor, batch: Batch) -> CkaLoss:
        return attention_loss(
            student_rows,
            batch["teacher_rows"],
            batch["row_mask"],
            self.settings.cka,
            self.settings.cka_reduction,
        )
