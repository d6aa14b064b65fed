"""The head that a teacher was tuned with: what the teacher itself says of a task.

It reads embeddings, which are stored, so that asking it costs no teacher pass.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor

from emo.config_methods import Family
from emo.errors import DataError
from emo.outputs import read_json
from emo.tuning.objective import HEAD_FILE, Classes, JointScores, build_objective


@dataclass(frozen=True, slots=True)
class TunedHead:
    """A head and what it was tuned on.

    Attributes:
        objective: The head, which reads embeddings of whole rows.
        family: Family of the task.
        labels: Names of the classes, in the order of their numbers; empty for sts.
        identity: Which tuning it comes from; the model that it was tuned with says the same.
    """

    objective: Classes | JointScores
    family: Family
    labels: list[str]
    identity: str

    @torch.no_grad()
    def logits(self, vectors: Tensor) -> Tensor:
        """Return the logits of the classes, ``(N, C)``, or of scores, ``(N,)``."""
        return self.objective.logits(vectors)


def load_tuned_head(record: Path, width: int) -> TunedHead:
    """Load the head of a tuned teacher.

    Args:
        record: ``tuning.json``.
        width: Width of the teacher's embeddings.

    Raises:
        DataError: A file is missing, or the head does not read a row as one text.
    """
    tuning = read_json(record)
    family, labels = tuning["family"], tuning["labels"]
    objective = build_objective(family, tuning["settings"]["pairs"], width, len(labels))
    if not isinstance(objective, Classes | JointScores):
        raise DataError(
            f"{record}: the teacher was tuned on the two texts of a row apart, and has no head for "
            "a row that is read as one text; tune it with `tuning.pairs: joint`"
        )
    weights = record.with_name(HEAD_FILE)
    if not weights.is_file():
        raise DataError(f"{weights} is missing; tune the teacher again")
    objective.load_state_dict(load_file(weights))
    return TunedHead(objective.eval(), family, labels, tuning["identity"])
