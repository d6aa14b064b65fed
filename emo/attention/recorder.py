"""Who listens to the attention of the pass under way.

The attention function that transformers calls is told neither the pass nor the number of its
layer. A recorder belongs to one pass; it is found through a context variable, which every thread
and every nested pass has for itself, and it counts the layers as they come.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from emo.attention.capture import Capture
from emo.attention.scores import Scores

_active: ContextVar["Recorder | None"] = ContextVar("emo_attention_recorder", default=None)


class Recorder:
    """Takes out of one pass what a capture asks for.

    Args:
        capture: What is asked for.
        layers: Attention layers of the model.
    """

    def __init__(self, capture: Capture, layers: int) -> None:
        self.calls = 0
        self._capture = capture
        self._layers = layers
        self._rows: dict[int, Tensor] = {}
        self._importance: Tensor | None = None

    @property
    def complete(self) -> bool:
        """Whether each layer of the model was heard exactly once."""
        return self.calls == self._layers

    def next_layer(self) -> int | None:
        """Count a layer and return its number if anything of it is asked for."""
        layer = self.calls
        self.calls += 1
        last = self._capture.queries is not None and layer == self._layers - 1
        return layer if last or layer in self._capture.layers else None

    def take(self, layer: int, scores: Scores) -> None:
        """Take what is asked for of a layer."""
        if self._capture.positions is not None and layer in self._capture.layers:
            self._rows[layer] = scores.rows(self._capture.positions)
        if self._capture.queries is not None and layer == self._layers - 1:
            self._importance = scores.received(self._capture.queries)

    def rows(self, mask: Tensor) -> Tensor:
        """Return the ``(k, B, m, S)`` rows, 0 at padded keys; empty without layers.

        Args:
            mask: ``(B, S)``, True on tokens.
        """
        if not self._capture.layers:
            return torch.empty(0, device=mask.device)
        rows = torch.stack([self._rows[layer] for layer in self._capture.layers])
        return rows.masked_fill(~mask[:, None], 0.0)

    def importance(self, mask: Tensor) -> Tensor:
        """Return the ``(Q, B, S)`` importance, 0 at padded keys; empty without queries.

        Args:
            mask: ``(B, S)``, True on tokens.
        """
        if self._importance is None:
            return torch.empty(0, device=mask.device)
        return self._importance.masked_fill(~mask, 0.0)


def active_recorder() -> Recorder | None:
    """Return the recorder of the pass under way in this thread."""
    return _active.get()


@contextmanager
def recording(recorder: Recorder | None) -> Iterator[None]:
    """Let a recorder, or nobody, listen to the passes inside."""
    token = _active.set(recorder)
    try:
        yield
    finally:
        _active.reset(token)
