"""Turn texts into tokens, with a mark on each token for where it comes from.

This is the only place where texts become tokens, so the teacher store, the alignment and the
training batches cannot disagree about positions. A *position* is 0-based in the encoded sequence,
special tokens counted, prompt tokens not.

Shapes: ``n`` tokens of one text, ``N`` tokens of a block of texts.
"""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from emo.errors import ConfigError
from emo.raw_tokens import BlockText, RawTokens, encode_fast
from emo.slow_tokens import encode_slow
from emo.surfaces import SurfaceReader
from emo.texts import Text, joined

logger = logging.getLogger(__name__)

# Bounds the memory of the tokenizer's own objects; results do not depend on it.
TEXTS_PER_CALL = 1024
UNLIMITED = 10**6


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedText:
    """One text as a model reads it; all fields have one entry per token.

    Attributes:
        input_ids: Ids of prompt, special and text tokens, in the order the model reads them,
            int64 ``(n,)``.
        prompt: True on tokens that lie wholly inside the prompt, bool ``(n,)``.
        special: True on tokens the tokenizer added, bool ``(n,)``. A "[CLS]" or "<s>" that stands
            in the text gets the special token's id but is text, so it is False.
        spans: Character offsets (start, end) in the text, see :func:`joined`, without prompt and
            without surrounding whitespace, int32 ``(n, 2)``; (0, 0) for prompt and special tokens.
            A token that is nothing but whitespace or a mark has an empty span, and so has one of
            a slow tokenizer whose place was not found.
    """

    input_ids: NDArray[np.int64]
    prompt: NDArray[np.bool_]
    special: NDArray[np.bool_]
    spans: NDArray[np.int32]

    @property
    def places(self) -> NDArray[np.int64]:
        """Where the token of each position stands in ``input_ids``: all but the prompt's."""
        return np.flatnonzero(~self.prompt).astype(np.int64)


def own_limit(tokenizer: PreTrainedTokenizerBase) -> int | None:
    """Return the most tokens a tokenizer says that its model reads, None where it says none.

    Tokenizers without a limit of their own carry a number far above any.
    """
    limit = int(tokenizer.model_max_length)
    return limit if limit < UNLIMITED else None


class TextTokenizer:
    """Tokenizes texts exactly as SentenceTransformer does: prompt and text as one string.

    A slow tokenizer knows no character offsets; its spans are found by walking along the text,
    which is said once in the log.

    Args:
        tokenizer: The tokenizer.
        prompt: String put before each text, in a pair before the first only.
        max_length: Longest sequence in tokens, prompt and special tokens counted; longer texts
            lose the end that the tokenizer's truncation side names, of a pair the longer text
            first.

    Raises:
        ConfigError: The prompt leaves no room for a text.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, prompt: str = "", max_length: int = 512
    ) -> None:
        self.tokenizer = tokenizer
        self.prompt = prompt
        self.max_length = max_length
        self._surface = SurfaceReader(tokenizer)
        # A space at the prompt's end joins the text's first token.
        taken = len(tokenizer(prompt.rstrip())["input_ids"])
        if taken >= max_length:
            raise ConfigError(
                f"prompt {prompt!r} and special tokens take {taken} tokens of max_length "
                f"{max_length}, so no text would be read; shorten the prompt or raise max_length"
            )
        if not tokenizer.is_fast:
            logger.warning(
                "tokenizer %r is a slow one without character offsets; the places of its tokens "
                "are found by their characters",
                tokenizer.name_or_path,
            )

    def __call__(self, texts: Sequence[Text]) -> list[TokenizedText]:
        """Tokenize texts without padding."""
        tokenized: list[TokenizedText] = []
        for start in range(0, len(texts), TEXTS_PER_CALL):
            tokenized += self._block(texts[start : start + TEXTS_PER_CALL])
        return tokenized

    @cached_property
    def digest(self) -> str:
        """Hex SHA-256 of all that decides tokens: the stored tokenizer, prompt, length and side."""
        if self.tokenizer.is_fast:
            # What the last call asked for must not count; every call asks anew.
            self.tokenizer.backend_tokenizer.no_truncation()
            self.tokenizer.backend_tokenizer.no_padding()
            content = self.tokenizer.backend_tokenizer.to_str().encode()
        else:
            with TemporaryDirectory() as folder:
                self.tokenizer.save_pretrained(folder)
                files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
                content = b"".join(path.read_bytes() for path in files)
        asked = [self.prompt, self.max_length, self.tokenizer.truncation_side, self.unknown_id]
        return hashlib.sha256(content + json.dumps(asked).encode()).hexdigest()

    @cached_property
    def unknown_id(self) -> int | None:
        """Id of the unknown token, or None; a bare ``tokenizer.json`` tells it in its model."""
        if self.tokenizer.unk_token_id is not None or not self.tokenizer.is_fast:
            known: int | None = self.tokenizer.unk_token_id
            return known
        model = json.loads(self.tokenizer.backend_tokenizer.to_str())["model"]
        if model.get("unk_token") is not None:
            found: int | None = self.tokenizer.backend_tokenizer.token_to_id(model["unk_token"])
            return found
        place: int | None = model.get("unk_id")
        return place

    def surface(self, token_id: int) -> str:
        """Return the characters a token stands for: marks removed, byte pieces decoded.

        Bytes that are no whole character come out as U+FFFD.

        Raises:
            ConfigError: The tokenizer has no decoder, so nobody knows its marks.
        """
        return self._surface(token_id)

    def _block(self, texts: Sequence[Text]) -> list[TokenizedText]:
        """Tokenize some texts and move the offsets from the string read to the text."""
        reads = [
            self.prompt + text if isinstance(text, str) else (self.prompt + text[0], text[1])
            for text in texts
        ]
        raw = self._encode(reads)
        block = BlockText([joined(read) for read in reads])
        base = np.repeat(block.starts[:-1], raw.counts)
        limit = np.repeat(block.starts[1:], raw.counts)
        starts, ends = raw.starts + base, raw.ends + base
        seam = base + len(self.prompt)
        shown_text = np.zeros(len(starts), dtype=bool)
        # Some stored tokenizers give the start only (tokenizers issue 1553).
        for place in np.flatnonzero((starts == ends) & ~raw.special):
            surface = self.surface(int(raw.input_ids[place]))
            ends[place] = block.end_of(surface, int(starts[place]), int(limit[place]))
            shown_text[place] = bool(surface) and starts[place] >= seam[place]
        starts, ends = block.stripped(starts, ends)
        prompt = (ends <= seam) & ~raw.special & ~shown_text & bool(self.prompt)
        spans = np.stack([np.maximum(starts - seam, 0), ends - seam], axis=1).astype(np.int32)
        spans[prompt | raw.special] = 0
        bounds = np.concatenate([[0], np.cumsum(raw.counts)]).tolist()
        return [
            TokenizedText(
                raw.input_ids[start:end],
                prompt[start:end],
                raw.special[start:end],
                spans[start:end],
            )
            for start, end in zip(bounds, bounds[1:], strict=False)
        ]

    def _encode(self, reads: list[str | tuple[str, str]]) -> RawTokens:
        if self.tokenizer.is_fast:
            return encode_fast(self.tokenizer, reads, self.max_length)
        return encode_slow(self.tokenizer, self._surface, reads, self.max_length)
