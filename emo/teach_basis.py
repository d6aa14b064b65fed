"""Fit the components in which a teacher's token states are stored, before its shards are made.

Shapes: ``n`` tokens of a pass, ``D`` width of a state, ``W`` components kept.
"""

import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emo.attention import Capture
from emo.encoder import Encoder, load_encoder
from emo.errors import ConfigError
from emo.progress import Progress
from emo.provenance import code_version
from emo.store import write_shard
from emo.teacher_pass import (
    CHUNK_TEXTS,
    teacher_batches,
    teacher_identity,
    teacher_pass,
    token_states,
)
from emo.texts import Text, count_texts, evenly_spread, text_chunks

logger = logging.getLogger(__name__)

SAMPLE_TEXTS = 2048
"""Texts that a basis is fitted on, evenly spread over the set."""


def teach_basis(teacher: Path, texts: Path, out: Path, width: int, dtype: str = "float32") -> None:
    """Fit principal components of the teacher's token states on a sample of a text set.

    Args:
        teacher: The prepared teacher folder.
        texts: The text set (parquet).
        out: Folder of the basis: ``basis``, beside the shards.
        width: Components kept.
        dtype: Precision of the pass.

    Raises:
        ConfigError: States have fewer dimensions than are to be kept.
    """
    encoder = load_encoder(teacher, dtype).eval()
    require_width(encoder, width)
    moments = Moments(encoder.width)
    sample = _sample(texts)
    tokenizer = encoder.tokenizer()
    with Progress(len(sample), "basis") as progress:
        for start in range(0, len(sample), CHUNK_TEXTS):
            tokenized = tokenizer(sample[start : start + CHUNK_TEXTS])
            for batch in teacher_batches(tokenized, encoder):
                encoding = teacher_pass(encoder, batch, Capture())
                moments.add(token_states(batch, encoding))
                progress.advance(len(batch.rows))
    write_basis(moments, width, basis_identity(teacher, encoder, dtype), out)


def require_width(encoder: Encoder, width: int) -> None:
    """Check that a teacher's states have as many dimensions as components are to be kept.

    Raises:
        ConfigError: They have fewer.
    """
    if width > encoder.width:
        raise ConfigError(
            f"store.width: {width} is more than the {encoder.width} dimensions of the teacher's "
            "token states; lower it or leave it out"
        )


def basis_identity(teacher: Path, encoder: Encoder, dtype: str) -> dict[str, Any]:
    """Return everything that a basis depends on besides its texts."""
    return teacher_identity(teacher, encoder, dtype) | {"code": code_version("emo.teach_basis")}


def write_basis(moments: "Moments", width: int, identity: dict[str, Any], out: Path) -> None:
    """Fit the components and write them.

    Args:
        moments: Of the token states of a sample.
        width: Components kept.
        identity: See :func:`basis_identity`.
        out: Folder of the basis.
    """
    centre, components, share = moments.components(width)
    with write_shard(out, identity, {}) as writer:
        for name, array in (("centre", centre), ("components", mixed(components))):
            writer.create(name, "float32", array.shape[1:])
            writer.append(name, array)
    logger.info("%d components hold %.2f%% of the variance of token states", width, 100 * share)


def mixed(components: NDArray[np.float32]) -> NDArray[np.float32]:
    """Turn components within the space they span, so that none is much larger than the others.

    A token's numbers are stored with one scale for all. Behind the first principal components,
    the last ones would be rounded to nothing.

    Formula (the orthonormal cosine transform):
        c'_k = Σ_j √(2 / W) cos(π k (j + 1/2) / W) c_j, for k = 0 over √2

    Args:
        components: ``(W, D)``.

    Returns:
        ``(W, D)``, as orthonormal as what was given.

    Example:
        >>> np.round(mixed(np.eye(2, dtype=np.float32)), 3).tolist()
        [[0.7070000171661377, 0.7070000171661377], [0.7070000171661377, -0.7070000171661377]]
    """
    width = len(components)
    order = np.arange(width)
    transform = np.sqrt(2 / width) * np.cos(np.pi / width * np.outer(order, order + 0.5))
    transform[0] /= np.sqrt(2)
    turned: NDArray[np.float64] = transform @ components.astype(np.float64)
    return turned.astype(np.float32)


class Moments:
    """Sums of states and of their products, in float64.

    Args:
        width: D.
    """

    def __init__(self, width: int) -> None:
        self._count = 0
        self._sum = np.zeros(width)
        self._products = np.zeros((width, width))

    def add(self, states: NDArray[np.float32]) -> None:
        """Count ``(n, D)`` states."""
        wide = states.astype(np.float64)
        self._count += len(wide)
        self._sum += wide.sum(axis=0)
        self._products += wide.T @ wide

    def components(self, width: int) -> tuple[NDArray[np.float32], NDArray[np.float32], float]:
        """Return the mean, the ``(W, D)`` components of largest variance, and its share.

        The sign of a component is free; its largest entry is made positive.
        """
        centre = self._sum / max(self._count, 1)
        covariance = self._products / max(self._count, 1) - np.outer(centre, centre)
        variances, vectors = np.linalg.eigh(covariance)
        components = vectors.T[::-1][:width]
        largest = np.abs(components).argmax(axis=1)
        components = components * np.sign(components[np.arange(width), largest])[:, None]
        share = float(variances[::-1][:width].sum() / variances.sum())
        return centre.astype(np.float32), components.astype(np.float32), share


def _sample(texts: Path) -> list[Text]:
    count = count_texts(texts)
    wanted = set(evenly_spread(count, SAMPLE_TEXTS))
    sample: list[Text] = []
    first = 0
    for chunk in text_chunks(texts, range(count), CHUNK_TEXTS):
        sample += [text for row, text in enumerate(chunk.texts, first) if row in wanted]
        first += len(chunk.texts)
    return sample
