"""Attention probabilities of some query rows, from what a fused attention is called with.

A fused kernel keeps no probabilities, but its queries and keys are at hand, and a few rows cost
little: ``m`` of ``S`` queries against all keys.

Shapes: ``B`` texts, ``H`` heads, ``G`` key heads (a divisor of ``H``), ``S`` length, ``d`` width
of a head, ``m`` rows a text, ``Q`` sets of rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import dropout

from emo.losses.precision import in_full_precision

BLOCK = 1 << 22
"""Probabilities held at once for the importance: 16 MiB, enough to keep the processor busy."""


@dataclass(frozen=True, slots=True)
class Scores:
    """One call of an attention layer.

    Attributes:
        query: ``(B, H, S, d)``.
        key: ``(B, G, S, d)``.
        masks: Each broadcasts to ``(B, H, S, S)``; bool is True where a query may look, anything
            else is added to the scores.
        causal: Whether a query sees no later key.
        scaling: Factor of the products.
        dropout: Rate at which the layer drops probabilities. The captured rows are dropped from by
            a draw of their own, as the layer's own draw stays inside the kernel: rows without
            dropout would belong to another model than the one that is trained, and eager attention
            returns dropped ones, too.
    """

    query: Tensor
    key: Tensor
    masks: tuple[Tensor, ...]
    causal: bool
    scaling: float
    dropout: float

    def rows(self, positions: Tensor) -> Tensor:
        """Return the head mean of chosen rows.

        Formula:
            A_ij = 1/H Σ_h softmax_j(scaling q_hi · k_hj + mask_hij)

        Args:
            positions: ``(B, m)``.

        Returns:
            ``(B, m, S)``, float32 at least.
        """
        texts, heads, length, width = self.query.shape
        index = positions[:, None, :, None]
        query = self.query.gather(2, index.expand(-1, heads, -1, width))
        masks = [
            mask.gather(2, index.expand(-1, mask.shape[1], -1, length))
            for mask in self._whole_masks()
        ]
        return self._probabilities(query, masks, index).mean(dim=1)

    def received(self, queries: Tensor) -> Tensor:
        """Return the attention that each key receives from sets of queries, head mean.

        Formula:
            s_qj = Σ_{i in set q} A_ij

        Computed a block of rows at a time. Without gradient only one block is held.

        Args:
            queries: ``(Q, B, S)`` bool.

        Returns:
            ``(Q, B, S)``, float32 at least.
        """
        texts, heads, length, _ = self.query.shape
        # Rows of no set count for nothing, but 0 times the NaN of a padded one would not be 0.
        query = self.query.masked_fill(~queries.any(dim=0)[:, None, :, None], 0.0)
        weight = queries.transpose(0, 1)[:, :, None].expand(-1, -1, heads, -1)
        columns = torch.arange(length, device=query.device)
        dtype = torch.promote_types(query.dtype, torch.float32)
        total = torch.zeros(texts, len(queries), length, dtype=dtype, device=query.device)
        for block in _blocks(length, texts * heads * length):
            masks = [mask[:, :, block] for mask in self._whole_masks()]
            index = columns[None, None, block, None]
            probabilities = self._probabilities(query[:, :, block], masks, index)
            total = total + _weighted_sum(probabilities, weight[..., block])
        return total.transpose(0, 1) / heads

    def _whole_masks(self) -> list[Tensor]:
        texts, _, length, _ = self.query.shape
        return [mask.expand(texts, -1, length, -1) for mask in self.masks]

    def _probabilities(self, query: Tensor, masks: list[Tensor], index: Tensor) -> Tensor:
        if self.causal:
            keys = torch.arange(self.key.shape[2], device=query.device)
            masks = [*masks, index >= keys]
        probabilities = _softmax(query, self.key, *masks, scaling=self.scaling)
        return dropout(probabilities, self.dropout) if self.dropout else probabilities


@in_full_precision
def _softmax(query: Tensor, key: Tensor, *masks: Tensor, scaling: float) -> Tensor:
    """Return ``(B, H, m, S)`` probabilities; heads of a group share a key head."""
    texts, heads, rows, width = query.shape
    grouped = (query * scaling).reshape(texts, key.shape[1], -1, width)
    scores = (grouped @ key.transpose(2, 3)).view(texts, heads, rows, key.shape[2])
    # The lowest finite number and not -inf: padded queries may see nothing, and must stay finite.
    lowest = torch.finfo(scores.dtype).min
    for mask in masks:
        if mask.dtype == torch.bool:
            scores = scores.masked_fill(~mask, lowest)
        else:
            scores = (scores + mask).clamp(min=lowest)
    return scores.softmax(dim=-1)


@in_full_precision
def _weighted_sum(probabilities: Tensor, weight: Tensor) -> Tensor:
    """Sum ``(B, H, b, S)`` over heads and rows with weights ``(B, Q, H, b)``: ``(B, Q, S)``."""
    return weight.flatten(2).to(probabilities.dtype) @ probabilities.flatten(1, 2)


def _blocks(length: int, row_size: int) -> Iterator[slice]:
    step = max(1, BLOCK // row_size)
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))
