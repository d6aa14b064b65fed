"""Read what a SentenceTransformer folder says beside its weights: modules, pooling, prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling
from torch import nn

from emo.config_errors import nearest
from emo.config_models import ModelSettings
from emo.errors import ConfigError, DataError
from emo.outputs import read_json

POOLING_MODES = {"mean": "mean", "cls": "cls", "last": "lasttoken", "weighted": "weightedmean"}
_POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""How SentenceTransformer folders up to version 5 name a pooling mode."""

_HEADS = {"Pooling": Pooling, "Dense": Dense, "Normalize": Normalize}
"""Modules that may stand behind the transformer; others than these would have to be tested."""


@dataclass(frozen=True, slots=True)
class ModuleEntry:
    """One line of ``modules.json``.

    Attributes:
        kind: Name of the class, as ``Dense``.
        path: Subfolder, empty for the folder itself.
        own: Whether the class is one of sentence-transformers.
    """

    kind: str
    path: str
    own: bool


@dataclass(frozen=True, slots=True)
class SentenceFolder:
    """A SentenceTransformer folder.

    Attributes:
        transformer: Folder of the transformers model.
        lower_case: Whether texts are lower-cased before the tokenizer.
        heads: The modules behind the transformer, in order, with their weights.
        prompt: The prompt that was chosen, or the folder's default.
    """

    transformer: Path
    lower_case: bool
    heads: list[nn.Module]
    prompt: str


def read_sentence_folder(settings: ModelSettings, source: Path) -> SentenceFolder:
    """Read a SentenceTransformer folder, all but the transformer itself.

    Raises:
        ConfigError: It has no prompt of the name asked for.
        DataError: It is none, or has modules other than those that are supported.
    """
    entries = _entries(source)
    if entries is None:
        raise DataError(
            f"{source} has no modules.json, so it is no sentence-transformers folder; set "
            "`format: transformers`"
        )
    first, *others = entries
    for entry in entries:
        known = entry.kind == "Transformer" if entry is first else entry.kind in _HEADS
        if not known or not entry.own:
            raise DataError(
                f"{source} has a {entry.kind} module in modules.json where only "
                f"{'Transformer' if entry is first else ', '.join(_HEADS)} of "
                "sentence-transformers is supported"
            )
        if not (source / entry.path).resolve().is_relative_to(source.resolve()):
            raise DataError(f"{source}: modules.json points outside the folder: {entry.path}")
    if [entry.kind for entry in others].count("Pooling") != 1 or others[0].kind != "Pooling":
        raise DataError(f"{source}: modules.json needs one Pooling right behind the Transformer")
    transformer = source / first.path
    return SentenceFolder(
        transformer=transformer,
        lower_case=_lower_case(transformer),
        heads=[_head(source, entry) for entry in others],
        prompt=_prompt(settings, source),
    )


def require_plain_folder(settings: ModelSettings, source: Path) -> None:
    """Check that nothing is lost when only the transformer is taken from a folder.

    Raises:
        ConfigError: The folder was trained with another pooling than is asked for.
        DataError: It has modules behind the pooling.
    """
    for entry in _entries(source) or []:
        if entry.kind not in ("Transformer", "Pooling", "Normalize"):
            raise DataError(
                f"{source} has a {entry.kind} module in modules.json; set "
                "`format: sentence-transformers` to keep it"
            )
        if entry.path and entry.kind == "Transformer":
            raise DataError(
                f"{source} keeps its transformer in {entry.path}; name that folder, or set "
                "`format: sentence-transformers`"
            )
    asked = settings.pooling or "mean"
    for path in sorted(source.glob("*_Pooling/config.json")):
        modes = _pooling_modes(read_json(path))
        if modes != [POOLING_MODES[asked]]:
            ours = {mode: name for name, mode in POOLING_MODES.items()}
            told = " and ".join(ours.get(mode, mode) for mode in modes)
            raise ConfigError(
                f"pooling: `{asked}`, but {path} says {told}; {_way_out(modes, ours)}"
            )


def _entries(source: Path) -> list[ModuleEntry] | None:
    path = source / "modules.json"
    if not path.is_file():
        return None
    return [
        ModuleEntry(
            kind=str(module["type"]).rpartition(".")[2],
            path=str(module["path"]),
            own=str(module["type"]).startswith("sentence_transformers."),
        )
        for module in read_json(path)
    ]


def _head(source: Path, entry: ModuleEntry) -> nn.Module:
    """Load a module that stands behind the transformer.

    sentence-transformers takes another activation than the folder names, with no more than a
    warning, where it does not trust the name.
    """
    config = source / entry.path / "config.json"
    activation = str(read_json(config).get("activation_function", "")) if config.is_file() else ""
    if entry.kind == "Dense" and not activation.startswith("torch.nn."):
        raise DataError(f"{config}: activation_function `{activation}` is not one of torch.nn")
    try:
        kind: type[Any] = _HEADS[entry.kind]
        head: nn.Module = kind.load(str(source), subfolder=entry.path, local_files_only=True)
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        raise DataError(f"{source}: cannot load {entry.path} ({entry.kind}): {error}") from error
    return head


def _lower_case(transformer: Path) -> bool:
    path = transformer / "sentence_bert_config.json"
    told = read_json(path) if path.is_file() else {}
    if told.get("transformer_task", "feature-extraction") != "feature-extraction":
        raise DataError(f"{path}: the transformer is no encoder: {told['transformer_task']}")
    return bool(told.get("do_lower_case", False))


def _prompt(settings: ModelSettings, source: Path) -> str:
    if settings.prompt:
        return settings.prompt
    path = source / "config_sentence_transformers.json"
    told = read_json(path) if path.is_file() else {}
    prompts: dict[str, str | None] = told.get("prompts") or {}
    name = settings.prompt_name or told.get("default_prompt_name")
    if name is None:
        return ""
    if name not in prompts:
        raise ConfigError(f"prompt_name: {path} has no prompt `{name}`{nearest(name, prompts)}")
    return prompts[name] or ""


def _pooling_modes(config: dict[str, Any]) -> list[str]:
    if "pooling_mode" in config:
        told = config["pooling_mode"]
        return [told] if isinstance(told, str) else list(told)
    return [mode for flag, mode in _POOLING_FLAGS.items() if config.get(flag)] or ["mean"]


def _way_out(modes: Sequence[str], ours: Mapping[str, str]) -> str:
    if len(modes) == 1 and modes[0] in ours:
        return f"set `pooling: {ours[modes[0]]}`"
    return "set `format: sentence-transformers` to pool as the folder does"
