import dataclasses
import subprocess
import sys

from emo.process import ProcessIdentity


def test_this_process_lives() -> None:
    assert not ProcessIdentity.current().is_known_dead()


def test_namesake_with_another_start_is_not_the_process() -> None:
    current = ProcessIdentity.current()
    assert dataclasses.replace(current, start=current.start - 60).is_known_dead()


def test_killed_but_not_yet_waited_for_is_dead() -> None:
    code = (
        "from emo.process import ProcessIdentity as P; import sys; c = P.current();"
        "print(c.host, c.pid, c.start, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        host, pid, start = process.stdout.readline().split()
        identity = ProcessIdentity(host, int(pid), float(start))
        assert not identity.is_known_dead()
        process.stdin.close()
        process.stdout.read()
        while not identity.is_known_dead():
            assert process.returncode is None
    assert identity.is_known_dead()


def test_nothing_is_known_of_another_host() -> None:
    current = ProcessIdentity.current()
    elsewhere = dataclasses.replace(current, host="elsewhere", start=0.0)
    assert not elsewhere.is_known_dead()
