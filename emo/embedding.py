"""Embed texts with a model folder, just as its users will: prompt, pooling and all."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

from emo.encoder import brings_code, choose_device, require_model_folder
from emo.outputs import read_json
from emo.progress import Progress
from emo.prompt_pooling import count_prompt

BATCH_SIZE = 32
CHUNK = 512
"""Texts between two signs of progress; inside a chunk the longest texts come first."""


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What a score depends on beside the weights; stored with every score.

    Attributes:
        name: Folder of the model as it was given.
        prompt: Put before every text.
        max_length: Tokens read of a text, prompt included.
        pooling: How token states become one vector.
        normalised: Whether embeddings have length 1.
        parameters: Number of weights.
        weights_sha256: Digest of the weights file, None when the model was not prepared by us.
    """

    name: str
    prompt: str
    max_length: int
    pooling: str
    normalised: bool
    parameters: int
    weights_sha256: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return the description as JSON takes it."""
        return asdict(self)


def load_model(folder: Path) -> SentenceTransformer:
    """Load a SentenceTransformer folder on the device that torch offers, without the network.

    Raises:
        ConfigError: The folder is no SentenceTransformer folder.
    """
    require_model_folder(folder)
    model = SentenceTransformer(
        str(folder),
        device=str(choose_device()),
        local_files_only=True,
        trust_remote_code=brings_code(folder),
    )
    count_prompt(model)
    return model


def describe(model: SentenceTransformer, folder: Path) -> ModelDescription:
    """Return what scores of ``model``, loaded from ``folder``, depend on."""
    modules = list(model)
    pooling = [module.pooling_mode for module in modules if isinstance(module, Pooling)]
    record = folder / "model.json"
    name = model.default_prompt_name
    return ModelDescription(
        name=folder.as_posix(),
        prompt=model.prompts[name] or "" if name else "",
        max_length=int(model.max_seq_length or 0),
        pooling="+".join(mode if isinstance(mode, str) else "+".join(mode) for mode in pooling),
        normalised=any(isinstance(module, Normalize) for module in modules),
        parameters=sum(weight.numel() for weight in model.parameters()),
        weights_sha256=read_json(record).get("weights_sha256") if record.is_file() else None,
    )


def embed(model: SentenceTransformer, texts: Sequence[str]) -> NDArray[np.float32]:
    """Embed texts with the model's own prompt.

    Returns:
        ``(N, D)`` in the order of ``texts``.
    """
    # Chunks of like length waste little padding, and the longest first shows early whether
    # memory suffices. The sort is stable, so batches depend on the texts alone.
    order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
    vectors: list[NDArray[np.float32]] = []
    with Progress(len(texts), "embed", "texts") as progress:
        for start in range(0, len(order), CHUNK):
            chunk = [texts[row] for row in order[start : start + CHUNK]]
            vectors.append(
                np.asarray(
                    model.encode(chunk, batch_size=BATCH_SIZE, show_progress_bar=False),
                    dtype=np.float32,
                )
            )
            progress.advance(len(chunk))
    embedded = np.concatenate(vectors)
    in_order = np.empty_like(embedded)
    in_order[order] = embedded
    return in_order
