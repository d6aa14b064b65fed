"""MPNet computes attention by itself, past transformers' interface: hooks on its layers listen.

MPNet adds a bias for the distance of two tokens to the scores, the same in every layer.
"""

import logging
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.models.mpnet.modeling_mpnet import MPNetSelfAttention

from emo.attention.recorder import active_recorder
from emo.attention.scores import Scores

logger = logging.getLogger(__name__)


def listen(model: PreTrainedModel) -> bool:
    """Hook the attention layers of MPNet; return whether the model has any."""
    layers = [module for module in model.modules() if isinstance(module, MPNetSelfAttention)]
    for layer in layers:
        if _record not in layer._forward_pre_hooks.values():
            layer.register_forward_pre_hook(_record, with_kwargs=True)
    if layers:
        logger.info("%s runs its own attention; rows are computed beside it", type(model).__name__)
    return bool(layers)


def _record(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    recorder = active_recorder()
    layer = None if recorder is None else recorder.next_layer()
    if recorder is not None and layer is not None:
        recorder.take(layer, _scores(module, *args[:3]))


def _scores(
    module: Any,
    states: Tensor,
    attention_mask: Tensor | None = None,
    position_bias: Tensor | None = None,
) -> Scores:
    def heads(projected: Tensor) -> Tensor:
        shape = (*projected.shape[:2], -1, module.attention_head_size)
        return projected.view(shape).transpose(1, 2)

    return Scores(
        query=heads(module.q(states)),
        key=heads(module.k(states)),
        masks=tuple(mask for mask in (position_bias, attention_mask) if mask is not None),
        causal=False,
        scaling=module.attention_head_size**-0.5,
        dropout=module.dropout.p if module.training else 0.0,
    )
