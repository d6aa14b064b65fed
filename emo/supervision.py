"""What a training on a labelled text set learns from besides the teacher's signals.

Shapes: N texts of the set, B of a batch, C classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from emo.config_methods import Family, MethodSettings
from emo.distil_inputs import DistilInputs, given
from emo.errors import ConfigError, DataError
from emo.labelled_texts import Targets, load_targets
from emo.store import Store
from emo.texts import load_texts
from emo.tuned_head import TunedHead, load_tuned_head

_VECTORS_TOGETHER = 4096


@dataclass(frozen=True, slots=True)
class Supervision:
    """Labels of a text set, and what the head of a tuned teacher says of the same texts.

    Attributes:
        targets: Class numbers (int64) or scores (float32), ``(N,)``.
        labels: Names of the classes, in the order of their numbers; empty for scores.
        teacher_logits: ``(N, C)``, or ``(N,)`` of scores; with a logit term.
    """

    targets: Tensor
    labels: list[str]
    teacher_logits: Tensor | None

    def tensors(self, batch: Sequence[int]) -> dict[str, Tensor]:
        """Return the tensors of texts, given by their numbers."""
        rows = list(batch)
        tensors = {"labels": self.targets[rows]}
        if self.teacher_logits is not None:
            tensors["teacher_logits"] = self.teacher_logits[rows]
        return tensors


def open_supervision(
    method: MethodSettings, family: Family, inputs: DistilInputs
) -> Supervision | None:
    """Open the labels of a text set, and ask the teacher's head where the method asks for it.

    Returns:
        None if the text set has no labels.

    Raises:
        ConfigError: The method does not fit a text set with labels, or one without.
        DataError: The teacher's head is of another tuning or task.
    """
    targets = load_targets(inputs.texts)
    if targets is None:
        if method.logits:
            raise ConfigError(
                f"{inputs.texts}: has no labels, so that the student has no head for `logits`; "
                "make it with `labelled: true`, or leave `logits` out"
            )
        return None
    if not (method.task or method.logits):
        raise ConfigError(
            f"{inputs.texts}: is labelled, and without `task` or `logits` the student's head would "
            "stay random; give one of them a weight above 0"
        )
    if (family == "sts") == bool(targets.labels):
        held = "classes" if targets.labels else "scores"
        raise ConfigError(f"{inputs.texts}: holds {held}, which are not of the family {family}")
    logits = _teacher_logits(inputs, targets) if method.logits else None
    return Supervision(torch.tensor(targets.values), targets.labels, logits)


def _teacher_logits(inputs: DistilInputs, targets: Targets) -> Tensor:
    record = given(inputs.tuning, "the head of a tuned teacher", "--tuning")
    signals = Store(inputs.store)
    head = load_tuned_head(record, len(signals["vector_centre"]))
    _require_same(head, record, signals, targets)
    rows = signals.rows(load_texts(inputs.texts).keys)
    chunks = np.split(rows, range(_VECTORS_TOGETHER, len(rows), _VECTORS_TOGETHER))
    logits = [head.logits(torch.from_numpy(signals.stacked("vectors", chunk))) for chunk in chunks]
    signals.release()
    return torch.cat(logits)


def _require_same(head: TunedHead, record: Path, signals: Store, targets: Targets) -> None:
    """Check that head, stored vectors and labels are of one tuning."""
    tuned = signals.identity["teacher"].get("tuned", {})
    if tuned.get("identity") != head.identity:
        raise DataError(
            f"{record}: the head of another tuning than that of the teacher in {signals.folder}; "
            "give the record beside that teacher, or make the store again"
        )
    if head.labels != targets.labels:
        raise DataError(
            f"{record}: the teacher tells {', '.join(head.labels) or 'scores'} apart, the text set "
            f"{', '.join(targets.labels) or 'scores'}; tune the teacher on the task of the text set"
        )
