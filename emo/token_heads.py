"""Heads for token states alone, started where least squares on mapped tokens puts them."""

import torch
from torch import Tensor, nn

from emo.batches import Collator
from emo.config_methods import TokenTerms
from emo.encoder import Encoder
from emo.errors import DataError
from emo.methods import fit_head
from emo.methods.counted import counted_tokens
from emo.texts import evenly_spread

TOKEN_HEAD_TEXTS = 1024
"""Texts on whose tokens the heads are fitted: some twenty thousand tokens of plain sentences."""

_BATCH = 64


def fit_token_heads(
    student: Encoder, settings: TokenTerms, collator: Collator, texts: int
) -> list[nn.Linear]:
    """Fit a map from student to teacher states on the mapped tokens of texts spread over the set.

    Args:
        student: The untrained student.
        settings: The method's part of the study, which says the layers and the tokens that count.
        collator: Joins texts with their teacher states and map.
        texts: Number of texts of the set.

    Returns:
        A head for each compared layer, from its states to the teacher's last ones.

    Raises:
        DataError: The texts have hardly any mapped tokens.
    """
    chosen = evenly_spread(texts, TOKEN_HEAD_TEXTS)
    read = [
        _mapped_states(student, settings, collator(chosen[start : start + _BATCH]))
        for start in range(0, len(chosen), _BATCH)
    ]
    layers = torch.cat([student_states for student_states, _ in read], dim=1)
    teacher_states = torch.cat([teacher_states for _, teacher_states in read])
    if len(teacher_states) < 2:
        raise DataError(
            f"{len(teacher_states)} mapped tokens in {len(chosen)} texts are too few to fit a head "
            "for tokens; set the method's `token_head` to shared"
        )
    return [fit_head(student_states, teacher_states) for student_states in layers]


@torch.inference_mode()
def _mapped_states(
    student: Encoder, settings: TokenTerms, batch: dict[str, Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the states of the mapped tokens that count, ``(k, P, D_s)`` and ``(P, D_t)``."""
    was_training = student.training
    student.eval()
    batch = {name: tensor.to(student.device) for name, tensor in batch.items()}
    encoding = student(batch["input_ids"], batch["mask"], layers=settings.state_layers or ())
    student.train(was_training)
    tokens = counted_tokens(settings, batch)
    text, teacher, place = tokens.pairs.unbind(dim=1)
    both = tokens.student_mask[text, place] & tokens.teacher_mask[text, teacher]
    layers = encoding.layer_states or (encoding.states,)
    return (
        torch.stack([states[text, place][both] for states in layers]),
        batch["teacher_states"][text, teacher][both],
    )
