"""Make a student from some layers of a larger model, or from layers of new weights."""

import copy
import inspect
from collections.abc import Sequence

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from emo.errors import ConfigError

_STACKS = ("encoder.layer", "layers", "transformer.layer")
"""Where architectures keep their layers: BERT-like, decoder-like, DistilBERT."""


def keep_layers(model: PreTrainedModel, layers: Sequence[int]) -> PreTrainedModel:
    """Return a model of the chosen layers, in the given order, all else as it was.

    The smaller model is built from its own config and then filled, so it cannot disagree with
    what a reload builds; no weight is random.

    Args:
        model: The source; it is left unchanged.
        layers: 0-based indices of the layers to keep.

    Raises:
        ConfigError: A layer does not exist, or the architecture's layers cannot be chosen from.
    """
    name, stack = type(model).__name__, _stack(model, "layers")
    count = model.config.num_hidden_layers
    for layer in layers:
        if layer >= count:
            raise ConfigError(
                f"layers: {layer} is out of range, {name} has the layers 0 to {count - 1}"
            )
    smaller = type(model)(_smaller_config(model, layers), **constructor_options(type(model)))
    weights = {
        renamed: value
        for key, value in model.state_dict().items()
        if (renamed := _renamed(key, stack, layers)) is not None
    }
    try:
        smaller.load_state_dict(weights)
    except RuntimeError as error:
        raise ConfigError(
            f"layers: the layers of {name} are not interchangeable: {error}"
        ) from error
    smaller.eval()  # type: ignore[no-untyped-call]
    return smaller


def draw_layers(model: PreTrainedModel, seed: int) -> PreTrainedModel:
    """Return a model whose layers have new weights, as its architecture draws them; others stay.

    What stays is what stands before and behind the layers: above all the word vectors.

    Args:
        model: The source; it is left unchanged.
        seed: Of the new weights.

    Raises:
        ConfigError: The architecture's layers are not known.
    """
    stack = _stack(model, "draw_layers")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        drawn = type(model)(copy.deepcopy(model.config), **constructor_options(type(model)))
    kept = {k: v for k, v in model.state_dict().items() if not k.startswith(f"{stack}.")}
    drawn.load_state_dict(drawn.state_dict() | kept)
    drawn.eval()  # type: ignore[no-untyped-call]
    return drawn


def constructor_options(architecture: type[PreTrainedModel]) -> dict[str, bool]:
    """Return the arguments that keep an architecture from adding an unused pooler.

    Where a checkpoint lacks the pooler, it would be random and each load would warn of it.
    """
    parameters = inspect.signature(architecture).parameters
    return {"add_pooling_layer": False} if "add_pooling_layer" in parameters else {}


def _stack(model: PreTrainedModel, key: str) -> str:
    """Return where a model has its layers; ``key`` of the settings asks."""
    stack = next((path for path in _STACKS if _is_stack(model, path)), None)
    if stack is None:
        raise ConfigError(
            f"{key}: {type(model).__name__} has no stack of layers to choose from "
            f"(looked for {', '.join(_STACKS)}); leave `{key}` out"
        )
    return stack


def _is_stack(model: PreTrainedModel, path: str) -> bool:
    found = dict(model.named_modules()).get(path)
    return isinstance(found, nn.ModuleList) and len(found) == model.config.num_hidden_layers


def _smaller_config(model: PreTrainedModel, layers: Sequence[int]) -> PreTrainedConfig:
    config = copy.deepcopy(model.config)
    config.num_hidden_layers = len(layers)
    kinds = config.to_dict().get("layer_types")
    if kinds is not None:  # full or sliding attention, one entry a layer
        config.layer_types = [kinds[layer] for layer in layers]
    return config


def _renamed(key: str, stack: str, layers: Sequence[int]) -> str | None:
    """Return a weight's name in the smaller model, None for a layer that is not kept."""
    if not key.startswith(f"{stack}."):
        return key
    index, _, rest = key.removeprefix(f"{stack}.").partition(".")
    if int(index) not in layers:
        return None
    return f"{stack}.{layers.index(int(index))}.{rest}"
