"""How fast the models embed, as measured on this machine."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from emo.errors import DataError
from emo.outputs import read_json


@dataclass(frozen=True, slots=True)
class Speed:
    """A measured speed and what it depends on.

    Attributes:
        texts_per_second: Median of the passes.
        texts: Texts a pass.
        batch_size: Texts a batch.
        device: Name of the GPU, or kind of device.
        threads: Threads that torch used.
        processors: Processors of the machine.
    """

    texts_per_second: float
    texts: int
    batch_size: int
    device: str
    threads: int
    processors: int

    @property
    def conditions(self) -> str:
        """What the speed depends on, in words; speeds compare only where this is equal."""
        return (
            f"{self.texts} texts in batches of {self.batch_size}, device {self.device}, "
            f"{self.threads} of {self.processors} processors"
        )


def load_speeds(paths: Mapping[str, Path]) -> dict[str, Speed]:
    """Read measured speeds by the name of the model.

    Raises:
        DataError: A file is missing or damaged.
    """
    return {name: _load_speed(path) for name, path in paths.items()}


def speed_of(speeds: Mapping[str, Speed], model: str) -> Speed:
    """Return a model's speed.

    Raises:
        DataError: It was not measured.
    """
    if model not in speeds:
        raise DataError(f"the speed of {model} was not measured; add its file to the report")
    return speeds[model]


def _load_speed(path: Path) -> Speed:
    record = read_json(path)
    try:
        return Speed(**{name: record[name] for name in Speed.__dataclass_fields__})
    except (KeyError, TypeError) as error:
        raise DataError(f"{path} is no speed file ({error!r}); measure again") from error
