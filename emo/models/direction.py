"""Make a decoder read in both directions, and check that it does.

Shapes: ``B`` texts, ``S`` tokens, ``D`` width.
"""

import torch
from torch import Tensor
from transformers import PreTrainedModel

from emo.errors import ConfigError

_PROBE_TOKENS = 6


def make_bidirectional(model: PreTrainedModel) -> None:
    """Let every token see all others, in the model and in what a reload of it builds.

    The mark is ``is_causal: false`` in the model's config, which transformers reads when it makes
    the attention mask, as LLM2Vec does by code of its own (BehnamGhader et al. 2024).

    Raises:
        ConfigError: The model sees both ways already, or its architecture ignores the mark.
    """
    name = type(model).__name__
    if sees_ahead(model):
        raise ConfigError(f"bidirectional: {name} reads in both directions already; leave it out")
    model.config.is_causal = False
    if not sees_ahead(model):
        raise ConfigError(
            f"bidirectional: {name} does not follow `is_causal: false` of its config, so it would "
            "stay causal; only architectures that do can be made bidirectional"
        )


def sees_ahead(model: PreTrainedModel) -> bool:
    """Tell whether the last token of a text changes the state of its first.

    One text without padding, since masks that are left out are the way to causal attention.

    Example:
        >>> from transformers import LlamaConfig, LlamaModel
        >>> sizes = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 2}
        >>> model = LlamaModel(LlamaConfig(vocab_size=9, num_hidden_layers=1, **sizes)).eval()
        >>> sees_ahead(model)
        False
        >>> make_bidirectional(model)
        >>> sees_ahead(model)
        True
    """
    ids = probe_ids(model)[:1]
    changed = ids.clone()
    changed[:, -1] = (ids[:, -1] + 1) % int(model.config.vocab_size)
    first, other = probe_states(model, ids)[:, 0], probe_states(model, changed)[:, 0]
    return not torch.equal(first, other)


def probe_ids(model: PreTrainedModel) -> Tensor:
    """Return ids of two texts ``(2, S)``, the same on each call."""
    vocabulary = int(model.config.vocab_size)
    generator = torch.Generator().manual_seed(0)
    return torch.randint(vocabulary, (2, _PROBE_TOKENS), generator=generator)


def probe_states(model: torch.nn.Module, ids: Tensor) -> Tensor:
    """Return the last hidden states ``(B, S, D)`` of texts without padding."""
    training = model.training
    model.eval()
    with torch.inference_mode():
        states: Tensor = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
    model.train(training)
    return states
