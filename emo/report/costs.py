"""What every job of a study took and left on disk, read from the files that the jobs left."""

import csv
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from emo.alignment.table import read_statistics
from emo.errors import DataError
from emo.jobs import Job
from emo.outputs import read_json

logger = logging.getLogger(__name__)

SECONDS, PEAK_MEMORY = "s", "max_rss"
"""Columns of Snakemake's benchmark files: wall-clock seconds and resident memory in MB."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a job read and left; None where it does not say or where it makes no sense.

    Attributes:
        texts: Texts that it read, of a training those of all its steps.
        tokens: Teacher tokens of these texts, the prompt's left out.
        bytes: Size of what it stored of the texts.
        device: Where the model ran.
    """

    texts: int | None = None
    tokens: int | None = None
    bytes: int | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What a job cost.

    Attributes:
        job: Which one.
        seconds: Wall-clock time, the start of the program included; None where its file is gone.
        peak_memory: Most resident memory in MB; None where the job was too short to be looked at.
        work: What it read and left.
    """

    job: Job
    seconds: float | None
    peak_memory: float | None
    work: Work

    @property
    def texts_per_second(self) -> float | None:
        """Texts by the seconds of the whole job."""
        return ratio(self.work.texts, self.seconds)

    @property
    def bytes_per_text(self) -> float | None:
        """Stored bytes by text."""
        return ratio(self.work.bytes, self.work.texts)

    @property
    def bytes_per_token(self) -> float | None:
        """Stored bytes by teacher token."""
        return ratio(self.work.bytes, self.work.tokens)


def ratio(amount: float | None, by: float | None) -> float | None:
    """Return how much by how many, None where one is unknown or there are none.

    >>> ratio(6, 4), ratio(None, 4), ratio(6, 0)
    (1.5, None, None)
    """
    return None if amount is None or not by else amount / by


def seconds_of(costs: Iterable[Cost]) -> list[float]:
    """Return the seconds of jobs, those left out of which none are known."""
    return [cost.seconds for cost in costs if cost.seconds is not None]


def load_costs(jobs: Sequence[Job]) -> list[Cost]:
    """Read what jobs cost.

    A job without a file of its run time is told of and not made again for it.

    Raises:
        DataError: A result is missing, or a file is damaged; the message names it.
    """
    return [_load_cost(job) for job in jobs]


def stored_parts(folder: str) -> list[str]:
    """Return the names of the shards of a gathered store.

    Raises:
        DataError: It is missing or damaged.
    """
    return [shard["name"] for shard in read_json(Path(folder) / "store.json")["shards"]]


def _load_cost(job: Job) -> Cost:
    seconds, peak_memory = _measured(Path(job.benchmark))
    path = Path(job.result)
    try:
        work = _WORK.get(job.rule, _nothing)(job, path)
    except (KeyError, TypeError, StopIteration) as error:
        raise DataError(f"{path}: does not say what it cost ({error!r}); make it again") from error
    return Cost(job, seconds, peak_memory, work)


def _measured(path: Path) -> tuple[float | None, float | None]:
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            row = next(csv.DictReader(stream, delimiter="\t"))
        memory = row[PEAK_MEMORY]
        return float(row[SECONDS]), None if memory == "NA" else float(memory)
    except FileNotFoundError:
        logger.warning("%s is gone: what its job took is not known", path)
        return None, None
    except (StopIteration, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} is no benchmark of Snakemake's ({error!r}); remove it") from error


def _nothing(job: Job, path: Path) -> Work:
    return Work()


def _shard(job: Job, path: Path) -> Work:
    shards = read_json(path.parent / "store.json")["shards"]
    shard = next(shard for shard in shards if shard["name"] == job.part)
    return Work(*(shard[name] for name in ("texts", "tokens", "bytes", "device")))


def _alignment(job: Job, path: Path) -> Work:
    return Work(read_statistics(path).texts, bytes=path.stat().st_size, device="cpu")


def _tuning(job: Job, path: Path) -> Work:
    return Work(device=read_json(path.parent / "tuning.json")["device"])


def _training(job: Job, path: Path) -> Work:
    record = read_json(path)
    steps = record["steps"] - record["resumed_from_step"]
    return Work(steps * record["batch_size"], device=record["device"])


def _evaluation(job: Job, path: Path) -> Work:
    record = read_json(path)
    return Work(record["texts"], device=record["device"])


def _on_device(job: Job, path: Path) -> Work:
    return Work(device=read_json(path)["device"])


_WORK: Mapping[str, Callable[[Job, Path], Work]] = {
    "tune": _tuning,
    "doctor": _on_device,
    "doctor_tuned": _on_device,
    "teach_shard": _shard,
    "align": _alignment,
    "teach_rows_shard": _shard,
    "trial": _training,
    "distil": _training,
    "evaluate": _evaluation,
    "evaluate_trial": _evaluation,
    "evaluate_reference": _evaluation,
    "speed": _on_device,
}
