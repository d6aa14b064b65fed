"""Adapters that a teacher is tuned by: put in before, merged after."""

from collections.abc import Sequence
from pathlib import Path

from peft import LoraConfig, PeftModel, get_peft_model
from transformers import PreTrainedModel

from emo.config_tuning import LoraTuning
from emo.encoder import Encoder
from emo.errors import ConfigError
from emo.models.adapters import MergedAdapter, merge_adapters


def add_adapter(encoder: Encoder, settings: LoraTuning) -> PeftModel:
    """Put an adapter into a teacher, in place; nothing else of the teacher is trained then.

    Args:
        encoder: The teacher.
        settings: Size and places of the adapter.

    Returns:
        The teacher's transformer as peft holds it; the encoder runs the same modules.

    Raises:
        ConfigError: The teacher has no layers of the names asked for.
    """
    encoder.requires_grad_(False)
    transformer: PreTrainedModel = encoder.transformer
    _require_layers(transformer, settings.targets)
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=settings.targets or "all-linear",
    )
    try:
        adapted = get_peft_model(transformer, config)
    except ValueError as error:
        raise ConfigError(
            f"tuning.targets: {type(transformer).__name__} cannot be adapted: {error}"
        ) from error
    assert isinstance(adapted, PeftModel)
    return adapted


def _require_layers(transformer: PreTrainedModel, targets: Sequence[str]) -> None:
    """Check that every name is a layer's: peft is content with one of them."""
    names = [f".{name}" for name, _ in transformer.named_modules()]
    missing = [name for name in targets if not any(each.endswith(f".{name}") for each in names)]
    if missing:
        raise ConfigError(
            f"tuning.targets: {type(transformer).__name__} cannot be adapted: it has no layer "
            f"{', '.join(missing)}; name layers by the last parts of their names"
        )


def merge_adapter(encoder: Encoder, adapted: PeftModel, folder: Path) -> MergedAdapter:
    """Merge the adapter into the teacher's weights, as adapters of a publisher are merged.

    Args:
        encoder: The teacher, which is moved to the CPU.
        adapted: Its transformer, from :func:`add_adapter`.
        folder: Where the adapter is kept meanwhile.

    Raises:
        CheckError: The merged teacher says something else than the one with the adapter.
        DataError: The adapter changes nothing.
    """
    adapted.save_pretrained(str(folder), save_embedding_layers=False)
    encoder.cpu()
    transformer: PreTrainedModel = adapted.unload()
    model, (merged,) = merge_adapters(transformer, [folder])
    assert model is encoder.transformer
    return merged
