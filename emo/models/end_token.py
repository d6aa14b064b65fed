"""See to it that every text ends with a certain token, however long it is.

Decoder embedders pool the state of that token. Its name is asked for, since tokenizers disagree
with themselves: Qwen3-Embedding ends texts with its padding token and not with its `eos_token`,
and the tokenizer file of e5-mistral lacks the token that its config promises.
"""

import json
from typing import Any

from tokenizers import Tokenizer, processors
from transformers import PreTrainedTokenizerFast

from emo.errors import ConfigError

_SHORT, _LONG = "a", "a b " * 64


def ensure_end_token(tokenizer: PreTrainedTokenizerFast, token: str) -> None:
    """Make the tokenizer append a token behind every text, unless it does so already.

    Example:
        >>> from tokenizers import Tokenizer, models, pre_tokenizers
        >>> backend = Tokenizer(models.WordLevel({"a": 0, "</s>": 1, "?": 2}, unk_token="?"))
        >>> backend.pre_tokenizer = pre_tokenizers.Whitespace()
        >>> tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="</s>")
        >>> ensure_end_token(tokenizer, "</s>")
        >>> tokenizer("a a a a", truncation=True, max_length=3)["input_ids"]
        [0, 0, 1]

    Raises:
        ConfigError: The tokenizer lacks the token, or ends texts with another one.
    """
    token_id = tokenizer.get_vocab().get(token)
    if token_id is None:
        raise ConfigError(f"end_token: the tokenizer has no token `{token}`")
    last = _appended(tokenizer)
    if last == token_id:
        return
    if last is not None:
        raise ConfigError(
            f"end_token: the tokenizer ends texts with `{tokenizer.convert_ids_to_tokens(last)}`, "
            f"not with `{token}`; name that one"
        )
    _append(tokenizer.backend_tokenizer, token, token_id)


def require_end_token(tokenizer: PreTrainedTokenizerFast, token: str, max_length: int) -> None:
    """Check that short and cut texts end with the token; meant for a tokenizer read back.

    Raises:
        ConfigError: One does not.
    """
    token_id = tokenizer.get_vocab()[token]
    for text in (_SHORT, _LONG * max_length):
        ids = tokenizer(text, truncation=True, max_length=max_length)["input_ids"]
        if ids[-1] != token_id or ids.count(token_id) != 1:
            raise ConfigError(
                f"end_token: texts end with {tokenizer.convert_ids_to_tokens(ids[-2:])} where one "
                f"`{token}` was asked for; {type(tokenizer).__name__} cannot append it"
            )


def _append(backend: Tokenizer, token: str, token_id: int) -> None:
    """Put the token at the end of the template that the tokenizer has, or give it one.

    Two templates in a row would not do: tokenizers cannot apply the second to a pair.
    """
    stored = json.loads(backend.to_str())
    steps = _steps(stored["post_processor"])
    template = next((step for step in steps if step["type"] == "TemplateProcessing"), None)
    if template is None:
        own = processors.TemplateProcessing(
            single=f"$A {token}", pair=f"$A {token} $B {token}", special_tokens=[(token, token_id)]
        )
        before = backend.post_processor
        backend.post_processor = processors.Sequence([before, own]) if before else own
        return
    for name in ("single", "pair"):
        pieces = template[name]
        ends = [place for place, piece in enumerate(pieces) if "Sequence" in piece]
        for end in reversed(ends):
            kind = next(iter(pieces[end].values()))["type_id"]
            pieces.insert(end + 1, {"SpecialToken": {"id": token, "type_id": kind}})
    template["special_tokens"][token] = {"id": token, "ids": [token_id], "tokens": [token]}
    backend.post_processor = Tokenizer.from_str(json.dumps(stored)).post_processor


def _steps(post_processor: dict[str, Any] | None) -> list[dict[str, Any]]:
    if post_processor is None:
        return []
    steps: list[dict[str, Any]] = post_processor.get("processors", [post_processor])
    return steps


def _appended(tokenizer: PreTrainedTokenizerFast) -> int | None:
    """Return the special token that already ends a text."""
    encoded = tokenizer(_SHORT, return_special_tokens_mask=True)
    ids, special = encoded["input_ids"], encoded["special_tokens_mask"]
    return int(ids[-1]) if ids and special[-1] else None
