"""The head that a student was trained with on a labelled text set, saved beside the student."""

from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import load_file, save_file

from emo.config_methods import Family
from emo.encoder import Encoder
from emo.errors import DataError
from emo.methods.task import LabelledTask, build_task
from emo.outputs import read_json, write_json

WEIGHTS, RECORD = "task_head.safetensors", "task_head.json"


@dataclass(frozen=True, slots=True)
class TaskHead:
    """A student's head.

    Attributes:
        task: The head, which reads the student's states.
        family: Family of the task.
        labels: Names of the classes, in the order of their numbers; empty for sts.
    """

    task: LabelledTask
    family: Family
    labels: list[str]


def save_task_head(head: TaskHead, folder: Path) -> None:
    """Write a head into the folder of a training."""
    weights = {name: value.cpu().contiguous() for name, value in head.task.state_dict().items()}
    save_file(weights, folder / WEIGHTS)
    write_json(folder / RECORD, {"family": head.family, "labels": head.labels})


def load_task_head(record: Path, student: Encoder) -> TaskHead:
    """Load a head onto the device of its student.

    Args:
        record: ``task_head.json``.
        student: The student that it was trained with.

    Raises:
        DataError: A file is missing.
    """
    about = read_json(record)
    weights = record.with_name(WEIGHTS)
    if not weights.is_file():
        raise DataError(
            f"{weights} is missing; remove training.json beside it and train the student again"
        )
    task = build_task(about["family"], student.width, len(about["labels"]))
    task.load_state_dict(load_file(weights))
    return TaskHead(task.to(student.device).eval(), about["family"], about["labels"])
