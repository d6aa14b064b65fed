"""Labelled text sets of tiny tasks, a teacher tuned on each, and its signals."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from emo.assembly import DistilSettings
from emo.config_tuning import LoraTuning
from emo.distil_inputs import DistilInputs
from emo.labelled_texts import gather_labelled_texts
from emo.requests import signal_request
from emo.texts import load_texts
from emo.tuning import TuningInputs, tune

from ..conftest import Tiny
from ..stores import make_store
from .tiny_training import SETTINGS, files_for
from .tiny_training import settings as usual_settings

TUNING = LoraTuning(
    kind="lora", pairs="joint", epochs=2, batch_size=8, learning_rate=3e-3, rank=4, alpha=8
)
METHODS = {
    "sft": SETTINGS["pooled"].model_copy(update={"cosine": 0.0, "relational": 0.0, "task": 1.0}),
    "logit": SETTINGS["pooled"].model_copy(
        update={"cosine": 0.0, "relational": 0.0, "task": 1.0, "logits": 1.0}
    ),
    "pooled": SETTINGS["pooled"].model_copy(update={"task": 1.0}),
    "emo-paper": SETTINGS["emo-paper"],
    "emo": SETTINGS["emo"].model_copy(update={"task": 1.0, "logits": 0.5}),
}


@dataclass(frozen=True, slots=True)
class Labelled(Tiny):
    """Files of a tuned teacher, a student and a labelled text set."""

    family: str
    task: Path

    @property
    def tuning(self) -> Path:
        return self.folder / "tuned" / "tuning.json"


def make_labelled(family, task, models, folder):
    """Make the text set of a task, tune the teacher on it, and store its signals.

    Two texts occur twice, with another label or score the second time.
    """
    own_task = folder / family
    shutil.copytree(task, own_task)
    train = pd.read_parquet(own_task / "train.parquet")
    label = train.columns[-1]
    again = train[:2].assign(**{label: train[label][[2, 4]].tolist()})
    pd.concat([train, again]).to_parquet(own_task / "train.parquet", index=False)
    gather_labelled_texts([own_task], [], folder / "texts.parquet")
    inputs = TuningInputs(models.teacher, own_task, ())
    tune(TUNING, inputs, [], folder / "checkpoints", folder / "tuned")
    (folder / "teacher").symlink_to(folder / "tuned" / "model")
    (folder / "student").symlink_to(models.student)
    texts = tuple(load_texts(folder / "texts.parquet").texts)
    files = Labelled(folder, folder, texts, family, own_task)
    make_store(files.teacher, files.texts, folder / "store")
    return files


def settings(files, name, **training) -> DistilSettings:
    chosen = usual_settings(**training)
    return chosen.model_copy(update={"method": METHODS[name], "family": files.family})


def inputs(files, name, **changes) -> DistilInputs:
    method = METHODS[name]
    tuning = files.tuning if method.logits else None
    request = signal_request(method, files.family)
    return files_for(files, request, **({"tuning": tuning} | changes))
