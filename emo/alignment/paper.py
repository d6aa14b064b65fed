"""The rewritten texts on which the paper aligns and ranks tokens (method-evidence 1.1, 1.2)."""

import re

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from emo.tokens import TextTokenizer

PUNCTUATION = re.compile(r"[^\w\s]")
DIGITS = re.compile(r"\d")


def paper_text(text: str, student_tokenizer: TextTokenizer) -> str:
    """Rewrite a text as the paper aligns it.

    The ids that the student reads are decoded without special tokens, lower-cased, and cleared of
    all that is neither word character nor whitespace. What the student cut off or did not know is
    lost, which is the paper's way; the repaired form aligns the original text.
    """
    tokenized = student_tokenizer([text])[0]
    input_ids = [tokenized.input_ids[place] for place in tokenized.places]
    decoded = student_tokenizer.tokenizer.decode(input_ids, skip_special_tokens=True)
    return PUNCTUATION.sub("", str(decoded).lower())


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
