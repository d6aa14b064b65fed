"""Load a transformers folder quietly, and only if every weight has its place."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError

import torch
from safetensors import SafetensorError
from transformers import (
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging as transformers_logging

from emo.errors import ConfigError, DataError
from emo.models.layers import constructor_options
from emo.outputs import read_json

_NOT_NEEDED = ("pooler.", "position_ids")
"""Weights that no embedding depends on: the pooler, and buffers that are now computed."""


def load_checkpoint(
    folder: Path, remote_code: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Load model (float32) and tokenizer of a local folder; no code of the folder is run unasked.

    Weights are read as safetensors where there are any, else as a pickle limited to tensors, which
    runs no code either. Output heads of the checkpoint, such as that of masked language modelling,
    are left behind.

    Args:
        folder: A transformers folder.
        remote_code: Whether code in the folder may be run.

    Raises:
        ConfigError: The architecture is unknown here, or the tokenizer is a slow one.
        DataError: Weights are missing, do not fit, or are more than the model has places for.
    """
    if not (folder / "config.json").is_file():
        raise DataError(f"{folder} has no config.json; the source must be a transformers folder")
    if (folder / "adapter_config.json").is_file():  # transformers would look for the base itself
        raise ConfigError(
            f"{folder} holds an adapter; name its base model as `source` and it under `adapters`"
        )
    with quiet_transformers():
        model = _model(folder, remote_code)
        tokenizer = _tokenizer(folder, remote_code)
    vectors = len(model.get_input_embeddings().state_dict()["weight"])
    if len(tokenizer) > vectors:  # fewer is common: tables are padded to a round size
        raise DataError(
            f"{folder}: the tokenizer has {len(tokenizer)} tokens, the model vectors for "
            f"{vectors}; they do not belong together"
        )
    return model, tokenizer


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence the progress bars and load reports of transformers; what matters is raised."""
    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _model(folder: Path, remote_code: bool) -> PreTrainedModel:
    if remote_code:
        _require_own_code(folder)
    options = {} if remote_code else constructor_options(_architecture(folder))
    pickled = any(folder.glob("*.bin")) and not any(folder.glob("*.safetensors"))
    try:
        model, loading = AutoModel.from_pretrained(
            folder,
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=remote_code,
            use_safetensors=not pickled,
            weights_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # reported instead, and refused below with its name
            **options,
        )
    except (OSError, RuntimeError, SafetensorError, UnpicklingError) as error:
        raise DataError(f"{folder}: cannot load the weights: {error}") from error
    loaded: PreTrainedModel = model
    _check_complete(folder, loaded, loading)
    return loaded


def _architecture(folder: Path) -> type[PreTrainedModel]:
    """Return the class of transformers' own that the folder's config asks for."""
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        architecture = MODEL_MAPPING[type(config)]
        if not isinstance(architecture, type):
            raise ValueError(f"{type(config).__name__} stands for several architectures")
    except (KeyError, ValueError) as error:
        raise ConfigError(
            f"{folder}: transformers knows no such architecture without code from the source, "
            f"which is not run unless `remote_code: true` asks for it: {str(error).splitlines()[0]}"
        ) from error
    return architecture


def _require_own_code(folder: Path) -> None:
    """Check that the code to run lies in the folder itself, so that it is pinned with it."""
    classes: dict[str, object] = read_json(folder / "config.json").get("auto_map", {})
    for name, reference in classes.items():
        if "--" in str(reference):
            raise ConfigError(
                f"remote_code: {folder} takes its {name} from another repository, {reference}, "
                "of which no revision is pinned"
            )


def _check_complete(
    folder: Path, model: PreTrainedModel, loading: dict[str, Iterable[object]]
) -> None:
    parts = {name for name, _ in model.named_children()}
    # A key outside the model's own parts belongs to an output head of another task.
    unexpected = [key for key in _names(loading["unexpected_keys"]) if key.split(".")[0] in parts]
    mismatched = _names(loading["mismatched_keys"])
    for fault, keys in (
        ("are missing", _names(loading["missing_keys"])),
        ("have no place in the model", unexpected),
        ("have another shape than the config says", mismatched),
    ):
        if needed := [key for key in keys if not any(word in key for word in _NOT_NEEDED)]:
            raise DataError(
                f"{folder}: {len(needed)} weights {fault}: {', '.join(needed[:5])}; "
                "config.json and the weights must be of one model"
            )


def _names(keys: Iterable[object]) -> list[str]:
    return sorted(str(key[0]) if isinstance(key, tuple) else str(key) for key in keys)


def _tokenizer(folder: Path, remote_code: bool) -> PreTrainedTokenizerFast:
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=remote_code
        )
    except (OSError, ValueError) as error:
        raise DataError(f"{folder}: cannot load the tokenizer: {error}") from error
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise ConfigError(
            f"{folder}: {type(tokenizer).__name__} gives no character offsets; "
            "add the tokenizer.json of a fast tokenizer to the folder"
        )
    return tokenizer
