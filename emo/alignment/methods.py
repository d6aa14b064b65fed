"""Align a whole text set with one of the methods."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal

from emo.alignment.mined import MinedPairs
from emo.alignment.mined_masses import MinedMassPairs
from emo.alignment.mined_types import MinedTypePairs
from emo.alignment.nearest import TextPairs
from emo.alignment.table import Alignment, tabulate
from emo.errors import ConfigError
from emo.tokens import TextTokenizer, TokenizedText

Method = Literal["mined", "mined-types", "mined-masses"]
PairFinder = Callable[[str, TokenizedText, TokenizedText], TextPairs]

METHODS: Mapping[str, Callable[[TextTokenizer, TextTokenizer], PairFinder]] = MappingProxyType(
    {"mined": MinedPairs, "mined-types": MinedTypePairs, "mined-masses": MinedMassPairs}
)
# Bounds the memory of the tokenized texts; the result does not depend on it.
TEXTS_PER_CALL = 1024


def align(
    texts: Sequence[str], teacher: TextTokenizer, student: TextTokenizer, method: Method
) -> Alignment:
    """Map the teacher's tokens of each text to the student's.

    Args:
        texts: The text set; a text's index becomes its row number.
        teacher: The teacher's tokenizer, with the teacher's prompt.
        student: The student's tokenizer, with the student's prompt.
        method: "mined" (repaired: token occurrences, one-to-one), "mined-types" (paper's relation
            map: token types, one-to-one) or "mined-masses" (paper's transport map: many-to-one,
            special tokens included).

    Returns:
        All pairs in long form, by text and teacher position, with statistics.

    Raises:
        ConfigError: The method is unknown.
    """
    if method not in METHODS:
        close = get_close_matches(method, METHODS)
        hint = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(METHODS)}"
        raise ConfigError(f"unknown alignment method {method!r}; {hint}")
    find_pairs = METHODS[method](teacher, student)
    return tabulate(list(_pairs_of_texts(texts, teacher, student, find_pairs)))


def _pairs_of_texts(
    texts: Sequence[str], teacher: TextTokenizer, student: TextTokenizer, find_pairs: PairFinder
) -> Iterator[TextPairs]:
    for start in range(0, len(texts), TEXTS_PER_CALL):
        part = texts[start : start + TEXTS_PER_CALL]
        yield from map(find_pairs, part, teacher(part), student(part))
