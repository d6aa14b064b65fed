"""The texts that attention rows are taken from, and those by whose importance they are ranked."""

from collections.abc import Sequence

from emo.alignment import content_text, paper_texts
from emo.texts import Text, joined
from emo.tokens import TextTokenizer


def compared_texts(texts: Sequence[Text], normaliser: TextTokenizer | None) -> list[Text]:
    """Return the texts whose rows are compared: the texts themselves, or the paper's form of them.

    Args:
        texts: The texts.
        normaliser: The student's tokenizer where the paper's form is read.
    """
    return list(texts) if normaliser is None else list[Text](paper_texts(texts, normaliser))


def content_texts(texts: Sequence[Text]) -> list[Text]:
    """Return the texts without stop words and digits, by whose importance the paper ranks."""
    return [content_text(joined(text)) for text in texts]
