"""Turn texts into tokens, with a mark on each token for where it comes from.

This is the only place where texts become tokens, so the teacher store, the alignment and the
training batches cannot disagree about positions. A *position* is 0-based in the encoded sequence,
special tokens counted, prompt tokens not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from emo.errors import ConfigError

# Decoders treat the first token of a sequence apart (no "##" removed, a leading space dropped), so
# a lone token is decoded behind this one and the anchor is cut off again.
DECODER_ANCHOR = "x"


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """One text as a model reads it; all fields have one entry per token.

    Attributes:
        input_ids: Ids of prompt, special and text tokens, in the order the model reads them.
        prompt: True on tokens that lie wholly inside the prompt.
        special: True on tokens the tokenizer added. A "[CLS]" or "<s>" that stands in the text
            gets the special token's id but is text, so it is False.
        spans: Character offsets (start, end) in the text, without prompt and without surrounding
            whitespace; (0, 0) for prompt and special tokens. A token that is nothing but
            whitespace or a mark has an empty span.
    """

    input_ids: tuple[int, ...]
    prompt: tuple[bool, ...]
    special: tuple[bool, ...]
    spans: tuple[tuple[int, int], ...]

    @property
    def places(self) -> NDArray[np.int64]:
        """Where the token of each position stands in ``input_ids``: all but the prompt's."""
        return np.flatnonzero(~np.array(self.prompt, dtype=bool)).astype(np.int64)


class TextTokenizer:
    """Tokenizes texts exactly as SentenceTransformer does: prompt and text as one string.

    Args:
        tokenizer: A fast tokenizer; only those know character offsets.
        prompt: String put before each text.
        max_length: Longest sequence in tokens, prompt and special tokens counted; longer texts
            lose their end.

    Raises:
        ConfigError: The tokenizer is slow, or the prompt leaves no room for a text.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, prompt: str = "", max_length: int = 512
    ) -> None:
        if not tokenizer.is_fast:
            raise ConfigError(
                f"tokenizer {tokenizer.name_or_path!r} is a slow one and has no character offsets; "
                "give a model folder with a tokenizer.json"
            )
        self.tokenizer = tokenizer
        self.prompt = prompt
        self.max_length = max_length
        # A space at the prompt's end joins the text's first token.
        taken = len(tokenizer(prompt.rstrip())["input_ids"])
        if taken >= max_length:
            raise ConfigError(
                f"prompt {prompt!r} and special tokens take {taken} tokens of max_length "
                f"{max_length}, so no text would be read; shorten the prompt or raise max_length"
            )

    def __call__(self, texts: Sequence[str]) -> list[TokenizedText]:
        """Tokenize texts without padding."""
        if not texts:
            return []
        read = [self.prompt + text for text in texts]
        batch = self.tokenizer(
            read,
            truncation=True,
            max_length=self.max_length,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            return_attention_mask=False,
            return_token_type_ids=False,
        )
        columns = (batch["input_ids"], batch["special_tokens_mask"], batch["offset_mapping"])
        return [self._place(*row) for row in zip(read, *columns, strict=True)]

    def surface(self, token_id: int) -> str:
        """Return the characters a token stands for: marks removed, byte pieces decoded.

        Bytes that are no whole character come out as U+FFFD.

        Raises:
            ConfigError: The tokenizer has no decoder, so nobody knows its marks.
        """
        decoder = self.tokenizer.backend_tokenizer.decoder
        if decoder is None:
            raise ConfigError(
                f"tokenizer {self.tokenizer.name_or_path!r} has no decoder, so word-start marks "
                "cannot be told from text; set one in its tokenizer.json"
            )
        token = self.tokenizer.convert_ids_to_tokens([token_id])[0]
        decoded: str = decoder.decode([DECODER_ANCHOR, token])
        return decoded.removeprefix(DECODER_ANCHOR).strip()

    def _place(
        self,
        read: str,
        input_ids: list[int],
        special_mask: list[int],
        offsets: list[tuple[int, int]],
    ) -> TokenizedText:
        """Tell prompt from text and move the offsets from the string read to the text."""
        prompt_end = len(self.prompt)
        prompt: list[bool] = []
        spans: list[tuple[int, int]] = []
        for token_id, is_special, (start, end) in zip(
            input_ids, special_mask, offsets, strict=True
        ):
            if is_special:
                prompt.append(False)
                spans.append((0, 0))
                continue
            if start == end:
                end = self._rebuilt_end(read, start, token_id)
            start, end = _strip(read, start, end)
            in_prompt = prompt_end > 0 and end <= prompt_end
            prompt.append(in_prompt)
            spans.append((0, 0) if in_prompt else (max(start - prompt_end, 0), end - prompt_end))
        return TokenizedText(
            tuple(input_ids), tuple(prompt), tuple(map(bool, special_mask)), tuple(spans)
        )

    def _rebuilt_end(self, read: str, start: int, token_id: int) -> int:
        """Find the end of a zero-length span (tokenizers issue 1553) from the token's characters.

        The span stays empty when the characters do not stand there.
        """
        surface = self.surface(token_id)
        begin, _ = _strip(read, start, len(read))
        return begin + len(surface) if surface and read.startswith(surface, begin) else start


def _strip(text: str, start: int, end: int) -> tuple[int, int]:
    """Take whitespace off both ends of a span, since only some tokenizers include it."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end
