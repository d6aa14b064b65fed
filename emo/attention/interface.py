"""The attention that transformers calls: its own SDPA, with a recorder listening.

Registered under a name of ours, so that a model changed by nothing but this name runs the very
kernels, masks and dropout of transformers' ``sdpa``.
"""

import logging
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from emo.attention import mpnet
from emo.attention.recorder import Recorder, active_recorder
from emo.attention.scores import Scores
from emo.errors import ConfigError

logger = logging.getLogger(__name__)

NAME = "emo"
"""Name of the attention implementation; a saved model does not keep it."""

_HARMLESS = frozenset(
    {
        "cache_position",
        "deterministic",  # of flash attention
        "is_causal",
        "output_attentions",
        "output_hidden_states",
        "position_ids",  # already in the rotated queries and keys
        "sliding_window",  # already in the mask
        "use_cache",
    }
)
"""Arguments that change no attention weight beyond what queries, keys and mask hold."""


def listen(model: PreTrainedModel) -> None:
    """Prepare a transformers model for captures; its results stay what they are.

    A model that runs no SDPA, or that runs it without transformers' interface, is left alone: a
    capture of it fails by name.
    """
    if mpnet.listen(model):
        return
    # Another implementation may read masks of another form, so only `sdpa` is replaced.
    if model.config._attn_implementation == "sdpa" and model._can_set_attn_implementation():
        model.set_attn_implementation(NAME)
        if not any(getattr(module, "layer_idx", None) is not None for module in model.modules()):
            logger.info(
                "%s numbers none of its attention layers; they are told by the order they run in",
                type(model).__name__,
            )


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attend as transformers' ``sdpa`` does, and let the recorder of the pass take its part."""
    recorder = active_recorder()
    if recorder is not None:
        _record(recorder, module, query, key, attention_mask, dropout, scaling, kwargs)
    output, _ = sdpa_attention_forward(
        module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
    )
    return output, None


def _record(
    recorder: Recorder,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    dropout: float,
    scaling: float | None,
    kwargs: dict[str, Any],
) -> None:
    layer = recorder.next_layer()
    if layer is None:
        return
    _refuse_unknown(module, kwargs)
    causal = kwargs.get("is_causal")
    if causal is None:
        causal = getattr(module, "is_causal", True)
    scores = Scores(
        query=query,
        key=key,
        masks=() if mask is None else (mask,),
        causal=bool(causal) and mask is None,
        scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
        dropout=dropout,
    )
    recorder.take(layer, scores)


def _refuse_unknown(module: nn.Module, kwargs: dict[str, Any]) -> None:
    """Softcapping, sinks or position biases would make captured rows differ from the model's."""
    unknown = sorted(
        name for name, value in kwargs.items() if value is not None and name not in _HARMLESS
    )
    if unknown:
        raise ConfigError(
            f"{type(module).__name__} changes its attention by {', '.join(unknown)}, which "
            "captured rows would miss; take another model, or, if it is the student, a method "
            "without an attention term"
        )


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, sdpa_mask)
