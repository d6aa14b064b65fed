"""The characters that a token of a vocabulary stands for."""

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from emo.errors import ConfigError

# Decoders treat the first token of a sequence apart (no "##" removed, a leading space dropped), so
# a lone token is decoded behind this one and the anchor is cut off again.
DECODER_ANCHOR = "x"


class SurfaceReader:
    """Reads the characters of tokens: marks removed, byte pieces decoded, no space around.

    Bytes that are no whole character come out as U+FFFD, or as nothing where a slow tokenizer's
    decoder leaves them out.

    Args:
        tokenizer: The tokenizer whose decoder knows the marks.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._backend = tokenizer.backend_tokenizer if tokenizer.is_fast else None
        self._decoder = self._backend.decoder if self._backend else None
        self._known: dict[int, str] = {}

    def __call__(self, token_id: int) -> str:
        """Return the characters of one token.

        Raises:
            ConfigError: The tokenizer has no decoder.
        """
        surface = self._known.get(token_id)
        if surface is None:
            surface = self._known[token_id] = self.of_run([token_id])
        return surface

    def of_run(self, token_ids: Sequence[int]) -> str:
        """Return the characters of tokens that follow each other.

        Raises:
            ConfigError: The tokenizer has no decoder.
        """
        if self._backend is None:
            tokens = self._tokenizer.convert_ids_to_tokens(list(token_ids))
            decoded = self._tokenizer.convert_tokens_to_string([DECODER_ANCHOR, *tokens])
        elif self._decoder is None:
            raise ConfigError(
                f"tokenizer {self._tokenizer.name_or_path!r} has no decoder, so word-start marks "
                "cannot be told from text; set one in its tokenizer.json"
            )
        else:
            tokens = list(map(self._backend.id_to_token, token_ids))
            decoded = self._decoder.decode([DECODER_ANCHOR, *tokens])
        return decoded.removeprefix(DECODER_ANCHOR).strip()
