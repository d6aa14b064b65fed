"""Ask a model's own head about the rows of a task: a trained student's, or a tuned teacher's."""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from emo.config_methods import Family
from emo.encoder import Encoder, Encoding, pad
from emo.errors import DataError
from emo.head_scores import score_head
from emo.metrics import FamilyScores
from emo.progress import Progress
from emo.task_head import RECORD, load_task_head
from emo.tasks import TEXT_COLUMNS, Split
from emo.texts import Text
from emo.tuned_head import load_tuned_head

ROWS_TOGETHER = 32
JUDGED: tuple[Split, ...] = ("validation", "test")


class JudgedHead:
    """The head of a trained student, or of a tuned teacher.

    Args:
        record: ``task_head.json`` of a student's training, or ``tuning.json`` of a teacher's.
        encoder: The model that it belongs to.

    Attributes:
        family: Family of the task.
        labels: Names of the classes, in the order of the logits; empty for sts.

    Raises:
        DataError: A file is missing, or the head does not read a row as one text.
    """

    def __init__(self, record: Path, encoder: Encoder) -> None:
        self.family: Family
        self.labels: list[str]
        if record.name == RECORD:
            own = load_task_head(record, encoder)
            self.family, self.labels = own.family, own.labels
            self._read = own.task.logits
        else:
            tuned = load_tuned_head(record, encoder.vector_width)
            self.family, self.labels = tuned.family, tuned.labels
            head = tuned.objective.to(encoder.device)

            def of_vectors(encoding: Encoding) -> Tensor:
                return head.logits(encoding.vectors)

            self._read = of_vectors
        self._encoder = encoder.eval()

    @torch.inference_mode()
    def logits(self, texts: list[Text]) -> NDArray[np.float32]:
        """Return what the head says of texts, pairs read as one: ``(N, C)``, or ``(N,)``."""
        encoder = self._encoder
        tokenized = encoder.tokenizer()(texts)
        order = sorted(range(len(texts)), key=lambda row: -len(tokenized[row].input_ids))
        answers = []
        with Progress(len(texts), "ask", "rows") as progress:
            for start in range(0, len(order), ROWS_TOGETHER):
                batch = [tokenized[row] for row in order[start : start + ROWS_TOGETHER]]
                input_ids, mask = pad(batch, encoder.pad_id)
                encoding = encoder(input_ids.to(encoder.device), mask.to(encoder.device))
                answers.append(self._read(encoding).float().cpu())
                progress.advance(len(batch))
        back = torch.tensor(order).argsort()
        answered: NDArray[np.float32] = torch.cat(answers)[back].numpy()
        return answered


def head_scores(
    record: Path,
    encoder: Encoder,
    splits: dict[Split, pd.DataFrame],
    family: Family,
    name: str,
) -> FamilyScores:
    """Score what a model's head says of the validation and test rows of a task.

    Args:
        record: See :class:`JudgedHead`.
        encoder: The model.
        splits: The rows.
        family: Family of the task.
        name: Model and task, for errors.

    Raises:
        DataError: The head is of another family or task, or a score is undefined.
    """
    head = JudgedHead(record, encoder)
    if head.family != family:
        raise DataError(f"{record}: a head of the family {head.family}, and {name} is of {family}")
    gold = {split: _gold(splits[split], family) for split in JUDGED}
    for split in JUDGED:
        _require_known(record, head.labels, gold[split], f"the {split} split of {name}")
    validation, test = (
        (head.logits(_texts(splits[split], family)), gold[split]) for split in JUDGED
    )
    return score_head(family, head.labels, validation, test, model=name)


def _require_known(record: Path, labels: list[str], gold: NDArray[np.generic], where: str) -> None:
    """Check that a head knows a label of the rows at least: else it is of another task."""
    if labels and not set(labels) & {str(value) for value in gold}:
        raise DataError(
            f"{record}: the head tells {', '.join(labels)} apart, and none of these is a label of "
            f"{where}; give the head that was trained on this task"
        )


def _texts(rows: pd.DataFrame, family: Family) -> list[Text]:
    columns = [rows[column].tolist() for column in TEXT_COLUMNS[family]]
    return columns[0] if len(columns) == 1 else list(zip(columns[0], columns[1], strict=True))


def _gold(rows: pd.DataFrame, family: Family) -> NDArray[np.generic]:
    gold: NDArray[np.generic]
    match family:
        case "classification":
            gold = rows["label"].to_numpy(dtype=str)
        case "pairs":
            gold = rows["label"].to_numpy()
        case _:
            gold = rows["score"].to_numpy(dtype=np.float64)
    return gold
