"""A tokenizer's own normaliser as a function on pieces."""

import unicodedata

from emo.tokens import TextTokenizer

# SentencePiece's mark for a space; normalisers write it into plain text too.
SPACE_MARK = "\N{LOWER ONE EIGHTH BLOCK}"
# Bounds the memory of the strings that are kept; the result does not depend on it.
CACHED_STRINGS = 1 << 18


class Normaliser(dict[str, str]):
    """Applies a tokenizer's normaliser, if it has one, drops all space, and remembers.

    Normalisers add space of their own: a mark in front, blanks around each Chinese character. A
    slow tokenizer keeps its normaliser to itself; of one that says it lower-cases, as BERT's, case
    and accents are dropped.

    Args:
        tokenizer: The tokenizer.
    """

    def __init__(self, tokenizer: TextTokenizer) -> None:
        super().__init__()
        inner = tokenizer.tokenizer
        self._backend = inner.backend_tokenizer.normalizer if inner.is_fast else None
        self._lower = not inner.is_fast and bool(getattr(inner, "do_lower_case", False))

    def __call__(self, text: str) -> str:
        """Return the normalised text without space."""
        return self[text]

    def __missing__(self, text: str) -> str:
        """Normalise a text for the first time."""
        if len(self) > CACHED_STRINGS:
            self.clear()
        normalised = text
        if self._backend is not None:
            normalised = self._backend.normalize_str(text)
        elif self._lower:
            parts = unicodedata.normalize("NFD", text.lower())
            normalised = "".join(part for part in parts if unicodedata.category(part) != "Mn")
        self[text] = kept = "".join(normalised.replace(SPACE_MARK, " ").split())
        return kept
