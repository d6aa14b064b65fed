"""Tiny random models of every architecture whose attention is captured, fused and eager."""

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn
from transformers import AutoConfig, AutoModel

from emo.encoder import Encoder

VOCABULARY = 50
PAD = 1
LAYERS = 3
WINDOW = 4
"""Tokens that a layer with a sliding window sees to one side; texts of the tests are longer."""

_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "pad_token_id": PAD,
    # Wide weights, so that attention is far from uniform.
    "initializer_range": 0.2,
}
_GROUPED = _SIZES | {"num_key_value_heads": 2, "head_dim": 8, "bos_token_id": 2, "eos_token_id": 3}

CONFIGS = {
    "bert": _SIZES,
    "xlm-roberta": _SIZES,
    "distilbert": {
        "vocab_size": VOCABULARY,
        "dim": 32,
        "n_layers": LAYERS,
        "n_heads": 4,
        "hidden_dim": 48,
        "max_position_embeddings": 40,
        "pad_token_id": PAD,
        "initializer_range": 0.2,
    },
    "modernbert": _SIZES
    | {
        "local_attention": 2 * WINDOW,
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
        "bos_token_id": 2,
        "eos_token_id": 3,
        "cls_token_id": 2,
        "sep_token_id": 3,
        "initializer_cutoff_factor": 3.0,
    },
    "mistral": _GROUPED | {"sliding_window": WINDOW},
    "llama": _GROUPED,
    "qwen3": _GROUPED
    | {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1},
    "gpt2": {
        "vocab_size": VOCABULARY,
        "n_embd": 32,
        "n_layer": LAYERS,
        "n_head": 4,
        "n_inner": 48,
        "n_positions": 40,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "pad_token_id": PAD,
        "initializer_range": 0.2,
        "scale_attn_by_inverse_layer_idx": True,
    },
    # Runs one module again and again, so that its layers can only be counted.
    "albert": _SIZES | {"embedding_size": 16, "bos_token_id": 2, "eos_token_id": 3},
    "mpnet": _SIZES | {"bos_token_id": 0, "eos_token_id": 2},
}
"""Keyword arguments of each architecture's configuration."""

DECODERS = ("mistral", "llama", "qwen3", "gpt2")


class _Body(nn.Module):
    """The transformers model where sentence-transformers keeps it."""

    def __init__(self, model):
        super().__init__()
        self.auto_model = model


def transformer(name, implementation, seed=0, **changes):
    """Return a random transformers model of an architecture; equal seeds give equal weights."""
    torch.manual_seed(seed)
    config = AutoConfig.for_model(name, **(CONFIGS[name] | changes))
    pooled = name in ("bert", "xlm-roberta", "albert", "mpnet")
    options = {"add_pooling_layer": False} if pooled else {}
    return AutoModel.from_config(config, attn_implementation=implementation, **options).eval()


def encoder_of(model):
    """Return an encoder around a transformers model, mean pooling."""
    width = model.config.hidden_size
    return Encoder(SentenceTransformer(modules=[_Body(model), Pooling(width)], device="cpu")).eval()


def fused_and_eager(name, seed=0, **changes):
    """Return an encoder and an eager transformers model of the same weights."""
    fused = transformer(name, None, seed, **changes)
    eager = transformer(name, "eager", seed, **changes)
    eager.load_state_dict(fused.state_dict())
    return encoder_of(fused), eager


def random_batch(lengths, side="right", seed=0):
    """Return ``input_ids`` and ``mask`` of random texts padded on one side."""
    generator = torch.Generator().manual_seed(seed)
    longest = max(lengths)
    input_ids = torch.full((len(lengths), longest), PAD)
    mask = torch.zeros(len(lengths), longest, dtype=torch.bool)
    for row, length in enumerate(lengths):
        place = slice(0, length) if side == "right" else slice(longest - length, longest)
        input_ids[row, place] = torch.randint(4, VOCABULARY, (length,), generator=generator)
        mask[row, place] = True
    return input_ids, mask
