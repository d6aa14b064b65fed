"""Records of the processes that feed tracked runs, so that those of a killed one can be closed.

After ``kill -9`` nobody tells the tracking store, and a run would count as running for ever. Each
process therefore leaves a small file from before it opens runs until they are closed; whoever
comes later finds the files of dead processes. The runs themselves bear their process in their tags.
"""

import itertools
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from emo.errors import DataError
from emo.outputs import read_json, write_json
from emo.process import ProcessIdentity

FOLDER = Path("results/.live")

_counter = itertools.count()


@dataclass(frozen=True, slots=True)
class LiveRuns:
    """That a process feeds runs, and where.

    Attributes:
        owner: the process.
        uri: public address of the tracking store.
    """

    owner: ProcessIdentity
    uri: str

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        """Read the form that :meth:`save` writes."""
        owner = ProcessIdentity(**record["owner"])
        return cls(owner=owner, uri=record["uri"])

    def save(self, folder: Path) -> Path:
        """Write the record into the folder and return its file."""
        path = folder / f"{self.owner.host}-{self.owner.pid}-{next(_counter)}.json"
        write_json(path, asdict(self))
        return path


def dead_runs(folder: Path) -> dict[Path, LiveRuns]:
    """Return the records of processes that are known to be dead, by file."""
    dead = {}
    for path in sorted(folder.glob("*.json")):
        try:
            record = LiveRuns.from_record(read_json(path))
        except DataError:  # its process has just ended and removed it
            continue
        if record.owner.is_known_dead():
            dead[path] = record
    return dead
