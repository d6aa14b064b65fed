"""Tunings of a second."""

import pytest

from emo.config_tuning import FullTuning, LoraTuning
from emo.tuning import TuningInputs, tune

SIZES = {"epochs": 3, "batch_size": 8, "learning_rate": 3e-3}


def settings(kind="lora", **changes):
    if kind == "lora":
        return LoraTuning(kind="lora", **(SIZES | {"rank": 4, "alpha": 8} | changes))
    return FullTuning(kind="full", **(SIZES | {"learning_rate": 1e-3} | changes))


@pytest.fixture(scope="session")
def inputs(tiny_models, tasks):
    """What a tuning on a family's task reads."""

    def inputs(family, **changes):
        usual = {"teacher": tiny_models.teacher, "task": tasks(family), "unseen": ()}
        return TuningInputs(**(usual | changes))

    return inputs


@pytest.fixture(scope="session")
def tuned(inputs, tmp_path_factory):
    """The result of a whole tuning, made once for each family, kind and reading."""
    made = {}

    def tuned(family, kind="lora", pairs="apart"):
        if (family, kind, pairs) not in made:
            folder = tmp_path_factory.mktemp("tuned")
            chosen = settings(kind, pairs=pairs)
            tune(chosen, inputs(family), [], folder / "checkpoints", folder / "out")
            made[family, kind, pairs] = folder
        return made[family, kind, pairs] / "out"

    return tuned
