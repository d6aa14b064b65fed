"""Choose a method's learning rate by the validation scores of its trials.

A trial is a training with a rate of the grid, judged like any other; only its validation scores are
looked at here. Every method has the same grid, the same seed and as many steps.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from emo.averages import over_families
from emo.config_methods import Family
from emo.errors import DataError
from emo.outputs import read_json, write_json

logger = logging.getLogger(__name__)


class Trial(BaseModel):
    """A learning rate and the score files of the student that was trained with it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    learning_rate: float
    scores: list[Path] = Field(min_length=1)


class Choice(BaseModel):
    """What a search found.

    Attributes:
        learning_rate: The rate with the best validation score, the smallest of equals.
        validation: Validation score by rate, averaged over families.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    learning_rate: float
    validation: dict[str, float]


def choose(trials: Sequence[Trial], out: Path) -> Choice:
    """Write which rate does best on the validation splits.

    Args:
        trials: One for each rate, all judged on the same tasks.
        out: The JSON file to write.

    Raises:
        DataError: A score file is missing or damaged.
    """
    found = {trial.learning_rate: _validation(trial.scores) for trial in trials}
    best = min(found, key=lambda rate: (-found[rate], rate))
    by_name = {f"{rate:g}": score for rate, score in sorted(found.items())}
    choice = Choice(learning_rate=best, validation=by_name)
    write_json(out, choice.model_dump())
    logger.info("learning rate %g of %s", best, by_name)
    return choice


def read_choice(path: Path) -> Choice:
    """Read what a search found.

    Raises:
        DataError: The file is missing or damaged.
    """
    try:
        return Choice.model_validate(read_json(path))
    except ValueError as error:
        raise DataError(f"{path} is no choice of a search; remove it and search again") from error


def with_chosen_rate(settings: Mapping[str, Any], chosen: Path) -> dict[str, Any]:
    """Return a training's settings, as given to the command, with the rate that its search found.

    They need have none: what a search replaces is no part of what a training was asked for.
    """
    rate = read_choice(chosen).learning_rate
    return {**settings, "training": {**settings["training"], "learning_rate": rate}}


def _validation(paths: Sequence[Path]) -> float:
    scores: dict[str, float] = {}
    families: dict[str, Family] = {}
    for path in paths:
        record = read_json(path)
        try:
            scores[record["task"]] = float(record["validation"])
            families[record["task"]] = record["family"]
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path} is no score file ({error!r}); evaluate again") from error
    return over_families(scores, families)
