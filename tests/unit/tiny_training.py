"""Trainings of the tiny student that take a second, and a way to kill them."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from emo.assembly import DistilSettings
from emo.config_methods import EmoPaperSettings, EmoSettings, PooledSettings
from emo.config_training import TrainingSettings
from emo.distil_inputs import DistilInputs
from emo.requests import signal_request
from emo.trainer import DistillationTrainer

STEPS = 6
SETTINGS = {
    "pooled": PooledSettings(form="pooled"),
    "emo": EmoSettings(form="emo"),
    "emo-paper": EmoPaperSettings(form="emo-paper"),
}
FORMS = sorted(SETTINGS)


class Killed(BaseException):
    """Ends a training at a step, as a signal would."""


def settings(form="emo", seed=1, method=None, **training):
    usual = {
        "steps": STEPS,
        "batch_size": 8,
        "learning_rate": 1e-3,
        "checkpoint_every": 2,
        "log_every": 1,
        "gradient_norms_every": 2,
    }
    return DistilSettings(
        method=SETTINGS[form].model_copy(update=method or {}),
        training=TrainingSettings(**(usual | training)),
        family="sts",
        seed=seed,
    )


def inputs(tiny, form="emo", **changes):
    return files_for(tiny, signal_request(SETTINGS[form], "sts"), **changes)


def files_for(tiny, request, **changes):
    """Name the files that a training with a request reads."""
    files = {
        "student": tiny.student,
        "texts": tiny.texts,
        "store": tiny.store,
        "alignment": tiny.alignment(request.alignment.name) if request.alignment else None,
        "rows": tiny.rows(request.rows.name) if request.rows else None,
    }
    return DistilInputs(**(files | changes))


def weights(folder: Path) -> bytes:
    return (folder / "student" / "model.safetensors").read_bytes()


@contextmanager
def killed_at(step):
    """Expect that a training is killed once so many steps are done, as a signal would do it."""
    usual = DistillationTrainer.compute_loss

    def compute_loss(trainer, *args, **kwargs):
        if trainer.state.global_step == step:
            raise Killed
        return usual(trainer, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DistillationTrainer, "compute_loss", compute_loss)
        with pytest.raises(Killed):
            yield
