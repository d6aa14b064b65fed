"""Terms on token states: transport, the states of mapped pairs, and relations among them."""

from collections.abc import Mapping

from torch import Tensor

from emo.config_methods import TokenTerms
from emo.encoder import Encoder, Encoding
from emo.losses import centred_states, matched_loss, relation_loss
from emo.methods.base import Batch
from emo.methods.counted import Tokens, counted_tokens
from emo.methods.space import Space
from emo.methods.transport import teacher_mass, transport


class StateTerms:
    """The terms on token states, each left out where its weight is 0.

    No module of its own: the space, which may hold weights, belongs to the method.

    Args:
        settings: The method's part of the study.
        space: Where student and teacher are compared.
    """

    def __init__(self, settings: TokenTerms, space: Space) -> None:
        self._settings = settings
        self._space = space

    def __call__(
        self, student: Encoder, encoding: Encoding, batch: Batch, weights: Mapping[str, float]
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the weighted terms of a batch, and what was left out of them, by reason."""
        settings = self._settings
        tokens = counted_tokens(settings, batch)
        terms: dict[str, Tensor] = {}
        counts: dict[str, Tensor] = {}
        if weights["transport"] or weights["matched"]:
            states = self._states(student, encoding, batch, tokens)
            mass = teacher_mass(settings, batch["teacher_importance"], tokens)
        if weights["transport"]:
            moved = transport(settings, *states, mass, tokens)
            used = (~moved.empty).sum().clamp(min=1)
            terms["transport"] = weights["transport"] * moved.loss.sum() / used
            counts["transport_skipped"] = moved.empty.sum()
            counts["transport_unconverged"] = (~moved.converged).sum()
        if weights["matched"]:
            matched = matched_loss(*states, tokens.pairs, mass, tokens.student_mask)
            terms["matched"] = weights["matched"] * matched.loss
            counts["matched_skipped"] = matched.texts_skipped
        if weights["relations"]:
            related = relation_loss(
                encoding.states,
                batch["teacher_states"],
                tokens.pairs,
                tokens.student_mask,
                tokens.teacher_mask,
                settings.relation_cka,
            )
            terms["relations"] = weights["relations"] * related.loss
            counts["relations_skipped"] = related.texts_skipped
        return terms, counts

    def _states(
        self, student: Encoder, encoding: Encoding, batch: Batch, tokens: Tokens
    ) -> tuple[Tensor, Tensor]:
        """Return the states of both sides in one space, centred if the method says so."""
        sides = self._space.tokens(student, encoding.states, batch["teacher_states"])
        if not self._settings.centred:
            return sides.student, sides.teacher
        return (
            centred_states(sides.student, tokens.student_mask, sides.student_centre),
            centred_states(sides.teacher, tokens.teacher_mask, sides.teacher_centre),
        )
