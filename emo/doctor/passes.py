"""Passes of a teacher over probe texts, laid out in batches of any size and padding.

Shapes: ``N`` texts, ``n`` tokens of one, ``B`` texts of a batch, ``S`` its columns, ``W`` width of
the states, ``D`` width of the vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from emo.encoder import Encoder, pad
from emo.tokens import TokenizedText

Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Said:
    """What a teacher says of texts, in float32 on the CPU.

    Attributes:
        vectors: ``(N, D)``.
        pooled: States after the pooling, ``(N, W)``.
        states: Of each text's own tokens, ``(n, W)`` each.
    """

    vectors: Tensor
    pooled: Tensor
    states: list[Tensor]


def lay_out(
    texts: Sequence[TokenizedText], pad_id: int, side: Side = "right", length: int = 0
) -> tuple[Tensor, Tensor]:
    """Pad texts on either side, to the longest or further.

    Returns:
        ``input_ids`` and ``mask``, ``(B, S)``.
    """
    input_ids, mask = pad(texts, pad_id)
    further = max(length - mask.shape[1], 0)
    input_ids = functional.pad(input_ids, (0, further), value=pad_id)
    mask = functional.pad(mask, (0, further), value=False)
    return (shifted(input_ids, mask), shifted(mask, mask)) if side == "left" else (input_ids, mask)


def shifted(table: Tensor, mask: Tensor) -> Tensor:
    """Move each row of a right-padded ``(B, S, ...)`` table to the right end.

    Example:
        >>> shifted(torch.tensor([[7, 8, 0]]), torch.tensor([[True, True, False]])).tolist()
        [[0, 7, 8]]
    """
    empty = (~mask).sum(dim=1).tolist()
    return torch.stack([row.roll(count, 0) for row, count in zip(table, empty, strict=True)])


@torch.inference_mode()
def ask(
    encoder: Encoder,
    texts: Sequence[TokenizedText],
    batch_size: int,
    side: Side = "right",
    length: int = 0,
) -> Said:
    """Run a teacher over texts in their order."""
    vectors, pooled, states = [], [], []
    for start in range(0, len(texts), batch_size):
        batch = texts[start : start + batch_size]
        input_ids, mask = lay_out(batch, encoder.pad_id, side, length)
        encoding = encoder(input_ids.to(encoder.device), mask.to(encoder.device))
        vectors.append(encoding.vectors.float().cpu())
        pooled.append(encoding.pooled.float().cpu())
        found = encoding.states.float().cpu()
        states += [row[kept] for row, kept in zip(found, mask, strict=True)]
    return Said(torch.cat(vectors), torch.cat(pooled), states)
