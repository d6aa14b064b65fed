"""Leave the prompt out of the pooling, by the exact number of its tokens.

sentence-transformers counts the tokens of the prompt by itself. Where a prompt ends with a space,
that count is one too high: read alone, the space is a token of its own; before a text, it is part
of the text's first token, which the pooling would then miss.
"""

from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from emo.errors import ConfigError
from emo.tokens import TextTokenizer

_TEXT = "a"
"""A text to find the end of the prompt with; models read it as one token or as several."""


def model_tokenizer(model: SentenceTransformer) -> TextTokenizer:
    """Return the tokenizer of a model with the model's own prompt and maximum length.

    Raises:
        ConfigError: The model names no maximum length, or its prompt leaves no room for a text.
    """
    prompt = model.prompts.get(model.default_prompt_name or "") or ""
    longest = model.max_seq_length
    if longest is None:
        raise ConfigError("the model names no maximum length; set `max_length` for it")
    return TextTokenizer(model.tokenizer, prompt, longest)


def count_prompt(model: SentenceTransformer) -> None:
    """Tell poolings that leave the prompt out how many tokens to leave out.

    All tokens up to the last that lies wholly inside the prompt are left out, special ones before
    it included. Models that pool the prompt, too, are left as they are.

    Args:
        model: The model; it is changed in place, and saves as before.

    Raises:
        ConfigError: As :func:`model_tokenizer` does.
    """
    for module in model:
        if isinstance(module, Pooling) and not module.include_prompt:
            length = prompt_length(model_tokenizer(model))

            def tell(_: nn.Module, inputs: tuple[dict[str, Any]], length: int = length) -> None:
                inputs[0]["prompt_length"] = length

            module.register_forward_pre_hook(tell)


def prompt_length(tokenizer: TextTokenizer) -> int:
    """Return the number of tokens up to the end of the prompt, 0 without a prompt."""
    (text,) = tokenizer([_TEXT])
    inside = np.flatnonzero(text.prompt)
    return int(inside[-1]) + 1 if len(inside) else 0
