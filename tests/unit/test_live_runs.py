from pathlib import Path

from emo.live_runs import LiveRuns, dead_runs
from emo.process import ProcessIdentity

CURRENT = ProcessIdentity.current()
DEAD = ProcessIdentity(host=CURRENT.host, pid=2**22 - 1, start=1.0)


def test_only_records_of_dead_processes_are_returned(tmp_path: Path) -> None:
    alive = LiveRuns(CURRENT, "http://server")
    dead = LiveRuns(DEAD, "sqlite:////x.db")
    assert alive.save(tmp_path) != alive.save(tmp_path), "one process may feed several groups"
    path = dead.save(tmp_path)
    (tmp_path / "damaged.json").write_text("{")
    assert dead_runs(tmp_path) == {path: dead}


def test_missing_folder_has_none(tmp_path: Path) -> None:
    assert dead_runs(tmp_path / "none") == {}
