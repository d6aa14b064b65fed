import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import emo
from emo import provenance
from emo.provenance import OBSERVERS, code_version, git_commit, settings_digest, versions

FILES = {
    "__init__.py": '"""Root."""\n__version__ = "1"\n',
    "stage.py": (
        "def run():\n    from .parts import thing\n    import emo.progress\n    return thing.go()\n"
    ),
    "parts/__init__.py": "",
    "parts/thing.py": (
        "import ot\nfrom emo.parts.deep import value\nfrom ..far import X\n\n\n"
        'def go():\n    """Say it."""\n    return value + 1\n'
    ),
    "parts/deep.py": "value = 3\n",
    "far.py": "import rapidfuzz\nX = 1\n",
    "progress.py": "from emo import apart\nSECONDS = 1\n",
    "apart.py": "Y = 1\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "emo"
    (root / "parts").mkdir(parents=True)
    for name, content in FILES.items():
        (root / name).write_text(content)
    return root


def edit(root: Path, name: str, old: str, new: str) -> None:
    content = (root / name).read_text()
    assert old in content
    (root / name).write_text(content.replace(old, new))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("parts/deep.py", "value = 3", "value = 4"),
        ("parts/thing.py", "value + 1", "1 + value"),
        ("far.py", "X = 1", "X = 2"),
        ("__init__.py", "__version__", "important"),
        ("parts/__init__.py", "", "Z = 1"),
        ("far.py", "import rapidfuzz", "import rapidfuzz, scipy"),
    ],
)
def test_change_that_may_move_results_changes_the_digest(
    root: Path, name: str, old: str, new: str
) -> None:
    before = code_version("emo.stage", root=root)
    edit(root, name, old, new)
    assert code_version("emo.stage", root=root) != before
    edit(root, name, new, old) if new != "Z = 1" else (root / name).write_text("")
    assert code_version("emo.stage", root=root) == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("parts/deep.py", "value = 3", "# why\nvalue  =  (3)\n'''About value.'''"),
        ("parts/thing.py", "Say it.", "Say it again."),
        ("__init__.py", '"1"', '"2"'),
        ("progress.py", "SECONDS = 1", "SECONDS = 2"),
        ("apart.py", "Y = 1", "Y = 2"),
    ],
)
def test_change_that_cannot_move_results_keeps_the_digest(
    root: Path, name: str, old: str, new: str
) -> None:
    before = code_version("emo.stage", root=root)
    edit(root, name, old, new)
    assert code_version("emo.stage", root=root) == before


@pytest.mark.parametrize(
    ("taken", "counts"),
    [
        ("from .shop import one", {"one": True, "two": False}),
        ("from .shop import two", {"one": False, "two": True}),
        ("from .shop.one import one", {"one": True, "two": False}),
        ("from .shop import *", {"one": True, "two": True}),
        ("from . import shop", {"one": True, "two": True}),
        ("import emo.shop", {"one": True, "two": True}),
    ],
)
def test_of_a_file_that_passes_names_on_the_names_taken_count(
    root: Path, taken: str, counts: dict[str, bool]
) -> None:
    (root / "shop").mkdir()
    passing = (
        '"""Index."""\nfrom .one import one\nfrom emo.shop.two import two\n__all__ = ["one"]\n'
    )
    (root / "shop" / "__init__.py").write_text(passing)
    for name in counts:
        (root / "shop" / f"{name}.py").write_text(f"{name} = 1\n")
    (root / "buyer.py").write_text(f"{taken}\n")
    before = code_version("emo.buyer", root=root)
    for name, counted in counts.items():
        edit(root, f"shop/{name}.py", "= 1", "= 2")
        assert (code_version("emo.buyer", root=root) != before) is counted, name
        edit(root, f"shop/{name}.py", "= 2", "= 1")
    assert code_version("emo.buyer", root=root) == before
    (root / "shop" / "__init__.py").write_text(f"{passing}print()\n")
    assert code_version("emo.buyer", root=root) != before, "the file now does something itself"


def test_library_versions_count_without_their_local_part(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = {"POT": "0.9", "rapidfuzz": "3.1+cpu", "torch": "2.1"}
    monkeypatch.setattr(provenance, "_version", lambda name: installed[name])
    before = code_version("emo.stage", root=root)
    installed["rapidfuzz"] = "3.1+cu12"
    installed["torch"] = "2.2"  # not imported by the stage
    assert code_version("emo.stage", root=root) == before
    installed["POT"] = "1.0"
    assert code_version("emo.stage", root=root) != before


def test_digest_is_hex_and_the_same_for_any_hash_seed(root: Path) -> None:
    code = (
        "from pathlib import Path; from emo.provenance import code_version;"
        f"print(code_version('emo.stage', root=Path({str(root)!r})))"
    )
    digests = {
        subprocess.check_output(
            [sys.executable, "-c", code], text=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).strip()
        for seed in ("1", "2")
    }
    assert digests == {code_version("emo.stage", root=root)}
    (digest,) = digests
    assert len(digest) == 16
    int(digest, 16)


def test_unknown_module_is_named(root: Path) -> None:
    with pytest.raises(ValueError, match=r"no module 'emo\.stge'"):
        code_version("emo.stge", root=root)


def test_whole_package_is_read_quickly_and_not_imported() -> None:
    package = Path(emo.__file__).parent
    modules = [
        ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for path in package.rglob("*.py")
        if path.name not in {"__init__.py", "__main__.py"}
    ]
    assert {*modules} >= OBSERVERS
    loaded = set(sys.modules)
    started = time.perf_counter()
    code_version(*modules)
    assert time.perf_counter() - started < 2.0
    assert set(sys.modules) - loaded <= {"importlib.metadata"}


def test_modules_that_only_word_messages_do_not_count() -> None:
    assert {"emo.config_errors", "emo.errors"} <= OBSERVERS


def test_settings_digest_tells_values_apart() -> None:
    assert settings_digest({"a": [1, 2]}) != settings_digest({"a": [2, 1]})
    assert settings_digest({"a": 1}) != settings_digest({"a": 1.5})
    with pytest.raises(ValueError, match="JSON compliant"):
        settings_digest(float("inf"))


def test_versions_name_the_stack() -> None:
    assert {"python", "torch", "POT", "numpy"} <= versions().keys()


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def test_git_commit_of_the_package_and_of_nothing_else(root: Path) -> None:
    assert git_commit(root) is None
    git(root.parent, "init")
    assert git_commit(root) is None, "the package is not tracked in this checkout"
    git(root.parent, "add", ".")
    git(root.parent, "commit", "-m", "first")
    commit = git_commit(root)
    assert commit is not None
    assert len(commit) == 40
    (root / "untracked").touch()
    assert git_commit(root) == commit
    edit(root, "far.py", "X = 1", "X = 2")
    assert git_commit(root) == f"{commit}-dirty"
