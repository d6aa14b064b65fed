"""Do the tokens of a text see its last one, as the teacher's make asks for?"""

import torch
from torch import Tensor
from transformers import MODEL_FOR_MASKED_LM_MAPPING

from emo.doctor.finding import Finding
from emo.doctor.passes import lay_out
from emo.doctor.subject import Subject
from emo.encoder import Encoding

NAME = "direction"

_NOISE = 10.0
"""How many times larger than between two equal passes a change must be to be one."""


def check_direction(subject: Subject) -> Finding:
    """Change the last token of a text and look at the states before it.

    At all of them, since a window may hide the end from the first. Alone and beside a longer text,
    since a mask that is left out where nothing is padded has made models causal.
    """
    alone, batch = _earlier_states_change(subject, 1), _earlier_states_change(subject, 2)
    measured = {"change alone": alone, "change in a batch": batch}
    sees = [change > 0.0 for change in (alone, batch)]
    encoder = type(subject.encoder.transformer.config) in MODEL_FOR_MASKED_LM_MAPPING
    name = type(subject.encoder.transformer).__name__
    if all(sees):
        return Finding(NAME, "passed", f"{name} reads in both directions", measured)
    if any(sees):
        return Finding(
            NAME,
            "failed",
            f"{name} reads in both directions only "
            f"{'alone' if sees[0] else 'beside a longer text'}",
            measured,
            "its attention mask goes wrong; use another version of transformers",
        )
    if subject.settings.bidirectional:
        return Finding(
            NAME,
            "failed",
            f"{name} is declared `bidirectional` and reads causally",
            measured,
            "prepare the teacher anew with `emo model`; if it stays causal, its architecture "
            "ignores `is_causal: false` of the config",
        )
    if encoder:
        return Finding(
            NAME,
            "failed",
            f"{name} is an encoder and reads causally",
            measured,
            "set `is_decoder` to false in the source's config.json",
        )
    return _causal(subject, name, measured)


def _causal(subject: Subject, name: str, measured: dict[str, float]) -> Finding:
    pooling = subject.pooling
    if pooling == "cls":
        return Finding(
            NAME,
            "failed",
            f"{name} reads causally, so the first token that is pooled has seen nothing",
            measured,
            "set `pooling: last`, or `bidirectional: true` if it was trained so",
        )
    if pooling in ("lasttoken", "weightedmean"):
        meaning = f"{name} reads causally, which suits its pooling ({pooling})"
        return Finding(NAME, "passed", meaning, measured)
    return Finding(
        NAME,
        "warning",
        f"{name} reads causally and pools by {pooling}, early tokens having seen little",
        measured,
        "set `bidirectional: true` or `pooling: last` if it was trained so",
    )


@torch.inference_mode()
def _earlier_states_change(subject: Subject, texts: int) -> float:
    """Return the largest change of a state before the changed token; 0 if it is but noise."""
    by_length = sorted(subject.tokenized, key=lambda text: len(text.input_ids))
    encoder = subject.encoder
    chosen = [by_length[len(by_length) // 2], by_length[-1]][:texts]
    input_ids, mask = lay_out(chosen, encoder.pad_id)
    last = len(chosen[0].input_ids) - 1
    changed = input_ids.clone()
    changed[0, last] = (input_ids[0, last] + 1) % int(encoder.transformer.config.vocab_size)

    def earlier(ids: Tensor) -> Tensor:
        encoding: Encoding = encoder(ids.to(encoder.device), mask.to(encoder.device))
        return encoding.states[0, :last].float()

    before = earlier(input_ids)
    noise = float((earlier(input_ids) - before).abs().max())
    change = float((earlier(changed) - before).abs().max())
    return change if change > _NOISE * noise else 0.0
