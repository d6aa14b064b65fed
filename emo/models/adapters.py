"""Merge LoRA adapters into a model, once and in float32, and check each on the way.

Shapes: ``B`` texts, ``S`` tokens, ``D`` width.
"""

import logging
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from peft import PeftConfig, PeftModel, PeftType, get_peft_model_state_dict
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import PreTrainedModel

from emo.errors import CheckError, ConfigError, DataError
from emo.models.direction import probe_ids, probe_states

logger = logging.getLogger(__name__)

CLOSEST = 0.9999
"""Least cosine between a token's state with the adapter applied and with it merged."""

_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PREFIX = "base_model.model."
"""What peft puts before the names of the model's own modules."""


@dataclass(frozen=True, slots=True)
class MergedAdapter:
    """What merging an adapter was seen to do; recorded with the prepared model.

    Attributes:
        weights: Number of weights in its file.
        change: Largest difference that applying it makes to the states of probe texts.
        least_cosine: Least cosine between a token's state with it applied and with it merged.
    """

    weights: int
    change: float
    least_cosine: float


def merge_adapters(
    model: PreTrainedModel, folders: Sequence[Path]
) -> tuple[PreTrainedModel, list[MergedAdapter]]:
    """Merge adapters, one after another, and return the model without a trace of them.

    The second adapter of LLM2Vec was trained on the model with the first one merged. The sums of
    plain LoRA commute; adapters that rescale the merged weights (DoRA) need the order. A low
    precision would round the sum, so the model must be in float32.

    Args:
        model: The base, in float32; its weights are changed in place.
        folders: A peft folder each, in the order of merging.

    Returns:
        The merged model, and what each adapter did to it.

    Raises:
        CheckError: A merged model says something else than the model with the adapter applied.
        ConfigError: An adapter is none of LoRA.
        DataError: A file is missing, or the adapter's weights do not fit the model one by one.
    """
    done = []
    for folder in folders:
        model, merged = _merge(model, folder)
        done.append(merged)
    return model, done


def _merge(model: PreTrainedModel, folder: Path) -> tuple[PreTrainedModel, MergedAdapter]:
    names = _stored_names(folder)
    ids = probe_ids(model)
    before = probe_states(model, ids)
    adapted = _apply(model, folder)
    _require_same_names(folder, names, adapted)
    applied = probe_states(adapted, ids)
    if torch.equal(before, applied):
        raise DataError(
            f"{folder}: the adapter changes nothing in what the model says; it was saved before "
            "it was trained, or for another model"
        )
    merged: PreTrainedModel = adapted.merge_and_unload(safe_merge=True)
    cosine = _least_cosine(applied, probe_states(merged, ids))
    if not cosine >= CLOSEST:
        raise CheckError(
            f"{folder}: states with the adapter merged have cosine {cosine:.5f} to those with it "
            f"applied, expected at least {CLOSEST}; the adapter cannot be merged into this model"
        )
    logger.info("merged %s: %d weights, least cosine %.6f", folder, len(names), cosine)
    return merged, MergedAdapter(len(names), float((applied - before).abs().max()), cosine)


def _stored_names(folder: Path) -> set[str]:
    for file in (_CONFIG, _WEIGHTS):
        if not (folder / file).is_file():
            raise DataError(f"{folder} has no {file}; the source must be a peft folder")
    try:
        with safe_open(folder / _WEIGHTS, framework="pt") as weights:
            return set(weights.keys())
    except SafetensorError as error:
        raise DataError(f"{folder / _WEIGHTS} is damaged: {error}") from error


def _apply(model: PreTrainedModel, folder: Path) -> PeftModel:
    config = PeftConfig.from_pretrained(str(folder))
    if config.peft_type != PeftType.LORA:
        raise ConfigError(f"adapters: {folder} is of the type {config.peft_type}, not LoRA")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is missing is an error below
            return PeftModel.from_pretrained(model, str(folder), torch_device="cpu")
    except (RuntimeError, ValueError) as error:
        reason = " ".join(line.strip() for line in str(error).splitlines()[:2])
        raise DataError(f"{folder}: the adapter does not fit the model: {reason}") from error


def _require_same_names(folder: Path, stored: set[str], adapted: PeftModel) -> None:
    """Compare names of weights; peft itself but warns, and leaves the missing ones untrained.

    Names follow the model's modules, which were called otherwise in other versions of
    transformers, or when the adapter was trained below an output head.
    """
    expected = set(get_peft_model_state_dict(adapted, save_embedding_layers=False))
    missing, surplus = expected - stored, stored - expected
    if missing or surplus:
        raise DataError(
            f"{folder}: the adapter's weights do not fit the model one by one. "
            f"{len(missing)} are missing: {_first(missing)}; "
            f"{len(surplus)} have no place: {_first(surplus)}. Was it trained on another model, "
            "or on one with an output head, whose names start with `model.`?"
        )


def _first(names: Iterable[str]) -> str:
    shown = sorted(name.removeprefix(_PREFIX) for name in names)[:3]
    return ", ".join(shown) or "none"


def _least_cosine(states: Tensor, others: Tensor) -> float:
    return float(torch.nn.functional.cosine_similarity(states, others, dim=-1).min())
