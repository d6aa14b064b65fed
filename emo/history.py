"""The training curve as a file: one JSON object a line, by optimiser step."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from emo.outputs import atomic_file


class History:
    """Appends records to a file and survives being killed at any byte.

    Args:
        path: The file; made when missing.
        last_step: Training goes on after this step: later records, of steps that will be taken
            again, and a half-written last line are dropped.
    """

    def __init__(self, path: Path, last_step: int) -> None:
        self._path = path
        kept = [record for record in read_history(path) if record["step"] <= last_step]
        with atomic_file(path) as temporary:
            temporary.write_text("".join(f"{json.dumps(record)}\n" for record in kept))

    def append(self, record: Mapping[str, Any]) -> None:
        """Add the record of a step."""
        with self._path.open("a") as stream:
            stream.write(f"{json.dumps(record)}\n")


def read_history(path: Path) -> list[dict[str, Any]]:
    """Return the whole records of a file; none when it does not exist."""
    records = []
    for line in path.read_text().splitlines() if path.is_file() else []:
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            break  # only the last line can be half written
    return records
