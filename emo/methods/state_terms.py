"""Terms on token states: transport, the states of mapped pairs, and relations among them."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from emo.config_methods import TokenTerms
from emo.encoder import Encoder, Encoding
from emo.losses import centred_states, matched_loss, relation_loss
from emo.methods.base import Batch
from emo.methods.counted import Tokens, counted_tokens
from emo.methods.space import Space
from emo.methods.transport import teacher_mass, transport

_Layers = Sequence[tuple[Tensor, Tensor]]
"""Student and teacher states in one space, by student layer."""
_Losses = dict[str, Tensor]
_Counts = dict[str, Tensor]


class StateTerms:
    """The terms on token states, each left out where its weight is 0.

    Each is a mean over the student layers that the method compares, every one of them with the
    teacher's last states. No module of its own: the space, which may hold weights, belongs to the
    method.

    Args:
        settings: The method's part of the study.
        space: Where student and teacher are compared.
    """

    def __init__(self, settings: TokenTerms, space: Space) -> None:
        self._settings = settings
        self._space = space

    def __call__(
        self, student: Encoder, encoding: Encoding, batch: Batch, weights: Mapping[str, float]
    ) -> tuple[_Losses, _Counts]:
        """Return the weighted terms of a batch, and what was left out of them, by reason."""
        tokens = counted_tokens(self._settings, batch)
        student_states = encoding.layer_states or (encoding.states,)
        losses: _Losses = {}
        counts: _Counts = {}
        if weights["transport"] or weights["matched"]:
            layers = self._in_one_space(student, student_states, batch["teacher_states"], tokens)
            mass = teacher_mass(self._settings, batch["teacher_importance"], tokens)
        if weights["transport"]:
            moved, skipped = self._transport(layers, mass, tokens, weights["transport"])
            losses["transport"] = moved
            counts |= skipped
        if weights["matched"]:
            matched = [
                matched_loss(*states, tokens.pairs, mass, tokens.student_mask) for states in layers
            ]
            losses["matched"] = weights["matched"] * _mean([result.loss for result in matched])
            counts["matched_skipped"] = matched[0].texts_skipped
        if weights["relations"]:
            related = [
                relation_loss(
                    states,
                    batch["teacher_states"],
                    tokens.pairs,
                    tokens.student_mask,
                    tokens.teacher_mask,
                    self._settings.relation_cka,
                )
                for states in student_states
            ]
            losses["relations"] = weights["relations"] * _mean([result.loss for result in related])
            counts["relations_skipped"] = related[0].texts_skipped
        return losses, counts

    def _in_one_space(
        self,
        student: Encoder,
        student_states: Sequence[Tensor],
        teacher_states: Tensor,
        tokens: Tokens,
    ) -> _Layers:
        """Bring each layer into the space, centred if the method says so."""
        layers = []
        for place, states in enumerate(student_states):
            sides = self._space.tokens(student, states, teacher_states, place)
            ours, theirs = sides.student, sides.teacher
            if self._settings.centred:
                ours = centred_states(ours, tokens.student_mask, sides.student_centre)
                theirs = centred_states(theirs, tokens.teacher_mask, sides.teacher_centre)
            layers.append((ours, theirs))
        return layers

    def _transport(
        self, layers: _Layers, mass: Tensor, tokens: Tokens, weight: float
    ) -> tuple[Tensor, _Counts]:
        moved = [transport(self._settings, *states, mass, tokens) for states in layers]
        # Masses decide which texts are empty, and they are those of every layer.
        used = (~moved[0].empty).sum().clamp(min=1)
        loss = weight * _mean([result.loss.sum() for result in moved]) / used
        converged = torch.stack([result.converged for result in moved]).all(dim=0)
        return loss, {
            "transport_skipped": moved[0].empty.sum(),
            "transport_unconverged": (~converged).sum(),
        }


def _mean(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(values)).mean()
