"""What is done to a student around its training: a head before, a check after."""

import logging
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from emo.encoder import Encoder, pad
from emo.errors import CheckError
from emo.losses import mean_cosine
from emo.methods import fit_head
from emo.store import Store
from emo.store.keys import Keys
from emo.texts import evenly_spread
from emo.tokens import TokenizedText

logger = logging.getLogger(__name__)

HEAD_TEXTS = 4096
"""Texts on which the head is fitted."""
CHECKED_TEXTS = 256
"""Texts on which collapse is looked for."""
LEAST_SPREAD = 0.1
"""Share of the spread before training below which a student counts as collapsed."""

_BATCH = 64


def add_fitted_head(
    student: Encoder, texts: Sequence[TokenizedText], keys: Sequence[str] | Keys, signals: Store
) -> None:
    """Give a student a head into the teacher's space, fitted on texts spread over the set.

    Args:
        student: The untrained student.
        texts: Its tokens of every text of the set.
        keys: Store key of each text.
        signals: The teacher's signals.
    """
    chosen = evenly_spread(len(texts), HEAD_TEXTS)
    pooled, _ = _encode(student, [texts[index] for index in chosen])
    rows = signals.rows(keys)[chosen]
    vectors = torch.from_numpy(signals.stacked("vectors", rows))
    student.add_head(fit_head(pooled, vectors.to(pooled)))


def add_drawn_head(student: Encoder, teacher_width: int) -> None:
    """Give a student a head into the teacher's space with random weights, as torch draws them.

    A student of random layers says nearly the same of every text. Least squares then fit noise,
    and the student collapses.
    """
    student.add_head(nn.Linear(student.width, teacher_width))


def set_dropout(student: Encoder, rate: float) -> None:
    """Set the rate of every dropout layer of a student, and of attention that drops by itself."""
    for module in student.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate
        for name, value in vars(module).items():
            if name.endswith("dropout") and isinstance(value, float):
                setattr(module, name, rate)


def spread(student: Encoder, texts: Sequence[TokenizedText]) -> float:
    """Return one minus the mean cosine between different texts, on a sample."""
    chosen = evenly_spread(len(texts), CHECKED_TEXTS)
    _, vectors = _encode(student, [texts[index] for index in chosen])
    return 1.0 - mean_cosine(vectors)


def check_collapse(before: float, after: float, keep: bool = False) -> bool:
    """Compare the spread of a student's vectors before and after training.

    Args:
        before: The spread before.
        after: The spread after.
        keep: Warn of a collapse where a study is to show it.

    Returns:
        Whether hardly any of the spread is left.

    Raises:
        CheckError: So it is, and it is not to be kept; or the spread is not a number.
    """
    if after > LEAST_SPREAD * before:
        return False
    found = (
        "the student has collapsed: one minus the mean cosine between different texts went from "
        f"{before:.4f} to {after:.4f}"
    )
    if not keep or math.isnan(after):
        raise CheckError(
            f"{found}; lower `training.learning_rate`, start from other weights, or set "
            "`training.collapsed: keep` to have it judged as it is"
        )
    logger.warning("%s; it is kept, as `training.collapsed` says", found)
    return True


@torch.inference_mode()
def _encode(student: Encoder, texts: Sequence[TokenizedText]) -> tuple[Tensor, Tensor]:
    """Return pooled states and final vectors of texts, without dropout."""
    was_training = student.training
    student.eval()
    order = sorted(range(len(texts)), key=lambda index: len(texts[index].input_ids))
    pooled, vectors = [], []
    for start in range(0, len(order), _BATCH):
        batch = [texts[index] for index in order[start : start + _BATCH]]
        input_ids, mask = pad(batch, student.pad_id)
        encoding = student(input_ids.to(student.device), mask.to(student.device))
        pooled.append(encoding.pooled)
        vectors.append(encoding.vectors)
    student.train(was_training)
    back = torch.tensor(order).argsort()
    return torch.cat(pooled)[back], torch.cat(vectors)[back]
