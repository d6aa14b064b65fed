"""Say from what code, settings and libraries a result came.

The digests decide what is computed again after a change: :func:`code_version` follows the code
itself, so nobody has to remember to raise a number, and a comment costs no training.
"""

import ast
import functools
import hashlib
import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DIGEST_LENGTH = 16

OBSERVERS = frozenset(
    {
        "emo.config_errors",  # words messages
        "emo.errors",
        "emo.interruption",
        "emo.live_runs",
        "emo.outputs",  # moves files whole into place; what is in them comes from the callers
        "emo.process",
        "emo.progress",
        "emo.provenance",
        "emo.run_tags",
        "emo.stale_lock",
        "emo.tolerance",
        "emo.tracking",
        "emo.tracking_uri",
    }
)
"""Modules that cannot change a result, left out of :func:`code_version` with all they import."""

LIBRARIES: dict[str, tuple[str, ...]] = {
    "numpy": ("numpy",),
    "ot": ("POT",),
    "peft": ("peft", "transformers", "torch"),
    "rapidfuzz": ("rapidfuzz",),
    "scipy": ("scipy", "numpy"),
    "sentence_transformers": ("sentence-transformers", "transformers", "tokenizers", "torch"),
    "sklearn": ("scikit-learn", "scipy", "numpy"),
    "tokenizers": ("tokenizers",),
    "torch": ("torch",),
    "transformers": ("transformers", "tokenizers"),
}
"""Import name to the distributions whose version can move a result when it is imported."""

_PACKAGE = Path(__file__).parent
_GIT_SECONDS = 10.0


def code_version(*modules: str, root: Path = _PACKAGE) -> str:
    """Return a digest of the code that the given modules run, without importing any of it.

    It covers the syntax trees of the modules and of all that they import from the package, at
    whatever place in the file, and the public version of the libraries in :data:`LIBRARIES` that
    these files import. Comments, docstrings, formatting and ``__version__`` do not count. Modules
    chosen by a string at run time are not seen: name them too. Trees are written as the running
    Python writes them, so another minor version of Python gives another digest. A file that only
    passes names on, as most ``__init__`` files do, brings in no more than the names taken from it.

    Args:
        modules: full names, such as ``"emo.distil"``.
        root: folder of the package; its name is the package's name.

    Raises:
        ValueError: a module is not in the package.
    """
    digests, foreign = _closure(modules, root)
    distributions = {name for top in foreign for name in LIBRARIES.get(top, ())}
    public = {name: _version(name).partition("+")[0] for name in distributions}
    return settings_digest({"modules": digests, "libraries": public})


def settings_digest(value: Any) -> str:
    """Return a digest of a JSON value that does not depend on the order of keys.

    Example:
        >>> settings_digest({"a": 1, "b": 2}) == settings_digest({"b": 2, "a": 1})
        True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that can move a result."""
    names = {name for distributions in LIBRARIES.values() for name in distributions}
    return {"python": platform.python_version()} | {name: _version(name) for name in sorted(names)}


def git_commit(root: Path = _PACKAGE) -> str | None:
    """Return the commit of the package's checkout, with ``-dirty`` if tracked files differ.

    Returns:
        None when the package is not run from a git checkout or git is missing.
    """
    # An installed copy may lie inside somebody else's checkout, whose commit says nothing.
    if _git(root, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    commit = _git(root, "rev-parse", "HEAD")
    changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}-dirty" if commit and changes else commit


def _closure(modules: tuple[str, ...], root: Path) -> tuple[dict[str, str], set[str]]:
    """Return the digests of all modules that come in, and the first names of foreign modules."""
    for name in modules:
        if _find(name, root) is None:
            raise ValueError(f"there is no module {name!r} in {root}")
    digests: dict[str, str] = {}
    foreign: set[str] = set()
    seen = set(OBSERVERS)
    waiting = set(modules)
    while waiting:
        name = waiting.pop()
        top, parent, last = name.partition(".")[0], *name.rpartition(".")[::2]
        if top != root.name:
            foreign.add(top)
        elif name not in seen:
            seen.add(name)
            module = _module(name, root)
            if module is None:  # a name that its parent defines or passes on
                exports = _exports(parent, root) or {}
                waiting.add(exports.get(last, parent))
            else:
                digests[name] = module.digest
                waiting |= module.imports
                # Importing a.b.c runs a and a.b first.
                waiting.update(p for p in _parents(name) if _exports(p, root) is None)
    return digests, foreign


def _parents(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _module(name: str, root: Path) -> "_Module | None":
    path = _find(name, root)
    if path is None:
        return None
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return _examine(package, path.read_bytes())


def _exports(name: str, root: Path) -> Mapping[str, str] | None:
    module = _module(name, root)
    return None if module is None else module.exports


def _find(name: str, root: Path) -> Path | None:
    top, *inner = name.split(".")
    if top != root.name:
        return None
    place = root.joinpath(*inner)
    candidates = (place / "__init__.py", place.with_name(f"{place.name}.py"))
    return next((path for path in candidates if path.is_file()), None)


@dataclass(frozen=True, slots=True)
class _Module:
    """What is known of a module without running it.

    Attributes:
        digest: of its syntax tree.
        imports: full names that it takes from elsewhere; whether one is a module is not known.
        exports: for a file that only passes names on, as an ``__init__`` does, where each comes
            from, else None. Taking one name from it is taking that name from its source.
    """

    digest: str
    imports: frozenset[str]
    exports: Mapping[str, str] | None


@functools.cache
def _examine(package: str, source: bytes) -> _Module:
    """Read a module; ``package`` is the package that the module is or lies in."""
    tree = _Essence().visit(ast.parse(source))
    found: set[str] = set()
    exports: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            names = {alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names}
            found.update(names.values())
            exports |= names
    passes_on = all(isinstance(node, ast.ImportFrom) or _is_all(node) for node in tree.body)
    digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    return _Module(digest, frozenset(found), exports if passes_on else None)


def _is_all(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    levels = package.split(".")
    return ".".join(
        [*levels[: len(levels) - node.level + 1], *([node.module] if node.module else [])]
    )


class _Essence(ast.NodeTransformer):
    """Takes out what cannot change a result: strings that stand alone, and ``__version__``."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        return None if names == ["__version__"] else node


@functools.cache
def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
