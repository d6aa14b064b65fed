"""Tell texts that say nothing, and training texts that the test split already holds."""

import unicodedata
from collections.abc import Iterable


def usable(text: str) -> bool:
    r"""Return whether a text has a character that is neither space, control nor format.

    Texts without one have no token beside the special ones, and mean pooling over none is 0/0.

    >>> usable(" a "), usable("?"), usable(" \u200b\t")
    (True, True, False)
    """
    return any(unicodedata.category(character)[0] not in "ZC" for character in text)


def normalised(text: str) -> str:
    """Fold what does not make two sentences differ: width, case, punctuation, spacing.

    NFKC, case folding, letters and digits kept, every other run of characters one space. A text
    without letters and digits, such as an emoji, keeps all its characters but whitespace.

    >>> normalised("  The CAT\u2019s \uff12nd life!")
    'the cat s 2nd life'
    >>> normalised(" ?! ")
    '?!'
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = " ".join("".join(c if c.isalnum() else " " for c in folded).split())
    return words or "".join(folded.split())


def normalised_set(texts: Iterable[str]) -> set[str]:
    """Return the normalised forms of texts."""
    return {normalised(text) for text in texts}
