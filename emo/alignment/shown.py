"""Tokens as their tokenizer shows them, marks and all, which is what the paper compares."""

from dataclasses import dataclass

from emo.tokens import TextTokenizer, TokenizedText


@dataclass(frozen=True, slots=True)
class ShownTokens:
    """The tokens of one text without the prompt; the index into each field is the position.

    Attributes:
        strings: Token strings of the vocabulary.
        special: True on tokens the tokenizer added.
        opener: String of the opening special token ("<s>", "[CLS]"), or None where the tokenizer
            adds none.
    """

    strings: list[str]
    special: list[bool]
    opener: str | None


def shown_tokens(tokenizer: TextTokenizer, tokenized: TokenizedText) -> ShownTokens:
    """Look up the strings of a text's tokens and the opening special among them."""
    model = tokenizer.tokenizer
    read = tokenized.places.tolist()
    input_ids = [tokenized.input_ids[place] for place in read]
    special = [tokenized.special[place] for place in read]
    strings = list(model.convert_ids_to_tokens(input_ids))
    openers = {model.cls_token_id, model.bos_token_id} - {None}
    opening = (
        string
        for string, token_id, is_special in zip(strings, input_ids, special, strict=True)
        if is_special and token_id in openers
    )
    return ShownTokens(strings, special, next(opening, None))
