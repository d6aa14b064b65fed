"""The rewritten texts on which the paper aligns and ranks tokens."""

import re
from collections.abc import Sequence

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from emo.texts import Text
from emo.tokens import TextTokenizer

PUNCTUATION = re.compile(r"[^\w\s]")
DIGITS = re.compile(r"\d")


def paper_texts(texts: Sequence[Text], student_tokenizer: TextTokenizer) -> list[str]:
    """Rewrite texts as the paper aligns them.

    The ids that the student reads are decoded without special tokens, lower-cased, and cleared of
    all that is neither word character nor whitespace. What the student cut off or did not know is
    lost, and the two texts of a pair become one, which is the paper's way; the repaired form
    aligns the original text.
    """
    read = [text.input_ids[text.places].tolist() for text in student_tokenizer(texts)]
    decode = student_tokenizer.tokenizer.decode
    decoded = (decode(input_ids, skip_special_tokens=True) for input_ids in read)
    return [PUNCTUATION.sub("", str(text).lower()) for text in decoded]


def content_text(text: str) -> str:
    """Take digits, stop words and lone full stops out of a text, for the ranking pass.

    The stop words are scikit-learn's 318. The authors used a list of 123 of their own, which is
    not published under a licence, so the ranking differs from theirs where the lists do.

    Example:
        >>> content_text("the 3 cats of mr. x1 were here .")
        'cats mr. x'
    """
    words = DIGITS.sub("", text).split()
    return " ".join(
        word for word in words if word != "." and word.lower() not in ENGLISH_STOP_WORDS
    )
