"""The teacher under examination, and what it says of the probe texts in full precision."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor

from emo.config_models import ModelSettings
from emo.doctor.finding import TOLERANCES, Tolerance
from emo.doctor.passes import Said, ask
from emo.embedding import embed
from emo.encoder import Encoder, load_encoder
from emo.errors import ConfigError, DataError
from emo.outputs import read_json
from emo.tokens import TokenizedText

logger = logging.getLogger(__name__)

BATCH_SIZES = (8, 64)
"""Batches that are compared with each text alone."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Vectors in float32.

    Attributes:
        vectors: By our own pass, ``(N, D)``.
        sentence: By SentenceTransformer, as users call it, ``(N, D)``.
    """

    vectors: Tensor
    sentence: Tensor


@dataclass(frozen=True)
class Subject:
    """A teacher and the probe texts.

    Attributes:
        folder: The prepared folder.
        record: Its ``model.json``.
        encoder: The teacher in the precision of the pass.
        dtype: That precision.
        texts: The probe texts.
        reference: The teacher in float32.
    """

    folder: Path
    record: dict[str, Any]
    encoder: Encoder
    dtype: str
    texts: list[str]
    reference: Reference

    @property
    def tolerance(self) -> Tolerance:
        """How far answers may be apart in this precision."""
        return TOLERANCES[self.dtype]

    @cached_property
    def settings(self) -> ModelSettings:
        """The settings by which the folder was prepared."""
        told = self.record["settings"]
        return ModelSettings(
            **{key: told[key] for key in ModelSettings.model_fields if key in told}
        )

    @property
    def pooling(self) -> str:
        """How token states become one vector, in SentenceTransformer's words."""
        (pooling,) = [module for module in self.encoder.model if isinstance(module, Pooling)]
        mode = pooling.pooling_mode
        return mode if isinstance(mode, str) else "+".join(mode)

    @cached_property
    def tokenized(self) -> list[TokenizedText]:
        """The probe texts as the teacher reads them."""
        return tokenize(self.encoder, self.texts)

    @cached_property
    def alone(self) -> Said:
        """What the teacher says of each text alone."""
        return ask(self.encoder, self.tokenized, 1)

    @cached_property
    def together(self) -> dict[int, Said]:
        """What it says of them in batches, by batch size."""
        return {size: ask(self.encoder, self.tokenized, size) for size in BATCH_SIZES}


def load_subject(folder: Path, texts: Sequence[str], dtype: str) -> Subject:
    """Load a teacher in full precision for reference, then as it will run.

    Raises:
        ConfigError: The precision is unknown.
        DataError: The folder was not prepared, or a text has no token.
    """
    if dtype not in TOLERANCES:
        raise ConfigError(f"--dtype: `{dtype}` is none of {', '.join(TOLERANCES)}")
    record = read_json(folder / "model.json")
    if "settings" not in record:
        raise DataError(f"{folder / 'model.json'} holds no settings; prepare it with `emo model`")
    encoder, reference = _full_precision(folder, texts)
    if dtype != "float32":
        del encoder  # both at once might not fit
        encoder = load_encoder(folder, dtype).eval()
    return Subject(folder, record, encoder, dtype, list(texts), reference)


def refer(encoder: Encoder, texts: Sequence[str]) -> Reference:
    """Ask a teacher for its vectors on both ways."""
    return Reference(
        vectors=ask(encoder, tokenize(encoder, texts), BATCH_SIZES[0]).vectors,
        sentence=torch.from_numpy(embed(encoder.model, texts)),
    )


def tokenize(encoder: Encoder, texts: Sequence[str]) -> list[TokenizedText]:
    """Return the texts as the teacher reads them.

    Raises:
        DataError: A text has no token.
    """
    tokenized = encoder.tokenizer()(texts)
    for text, tokens in zip(texts, tokenized, strict=True):
        if not len(tokens.input_ids):
            raise DataError(
                f"the teacher's tokenizer makes no token of {text!r}; leave such texts out, or "
                "name an `end_token`"
            )
    return tokenized


def _full_precision(folder: Path, texts: Sequence[str]) -> tuple[Encoder, Reference]:
    """Prefer the accelerator; a teacher whose float32 weights it cannot hold goes to the CPU."""
    try:
        encoder = load_encoder(folder, "float32").eval()
        return encoder, refer(encoder, texts)
    except torch.OutOfMemoryError:
        logger.warning(
            "the accelerator cannot hold %s in float32; the reference is computed on the CPU, "
            "which takes longer",
            folder,
        )
    encoder = load_encoder(folder, "float32", torch.device("cpu")).eval()
    return encoder, refer(encoder, texts)
