"""Align a whole text set with one of the methods."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType

from emo.alignment.mined import MinedPairs
from emo.alignment.mined_dp import MinedDpPairs
from emo.alignment.mined_masses import MinedMassPairs
from emo.alignment.mined_types import MinedTypePairs
from emo.alignment.origin import AlignmentOrigin
from emo.alignment.pairs import PairFinder, TextPairs, chain_pairs
from emo.alignment.paper import paper_texts
from emo.alignment.span import SpanPairs
from emo.alignment.table import Alignment, tabulate
from emo.config_methods import AlignmentMethod, TextForm
from emo.errors import ConfigError
from emo.texts import Text, joined
from emo.tokens import TextTokenizer, TokenizedText

METHODS: Mapping[str, type[PairFinder]] = MappingProxyType(
    {
        "mined": MinedPairs,
        "mined-dp": MinedDpPairs,
        "span": SpanPairs,
        "mined-types": MinedTypePairs,
        "mined-masses": MinedMassPairs,
    }
)
# Bounds the memory of tokens and pieces; the result does not depend on it.
TEXTS_PER_BLOCK = 2048


def align(
    texts: Sequence[Text],
    teacher: TextTokenizer,
    student: TextTokenizer,
    method: AlignmentMethod,
    form: TextForm = "original",
) -> Alignment:
    """Map the teacher's tokens of each text to the student's.

    Args:
        texts: The text set; a text's index becomes its row number.
        teacher: The teacher's tokenizer, with the teacher's prompt.
        student: The student's tokenizer, with the student's prompt.
        method: "mined" (repaired: token occurrences, one-to-one, mutual nearest by edit
            distance), "mined-dp" (the same in order, of least summed cost), "span" (by overlap of
            their places), "mined-types" (paper's relation map: token types, one-to-one) or
            "mined-masses" (paper's transport map: many-to-one, special tokens included).
        form: "original", or "normalised" to align `emo.alignment.paper_texts`.

    Returns:
        All pairs in long form, by text and teacher position, with statistics.

    Raises:
        ConfigError: The method is unknown, or asks for what a tokenizer has not.
    """
    find_pairs = pair_finder(teacher, student, method)

    def blocks() -> Iterator[TextPairs]:
        for start in range(0, len(texts), TEXTS_PER_BLOCK):
            block = texts[start : start + TEXTS_PER_BLOCK]
            if form == "normalised":
                block = paper_texts(block, student)
            yield find_pairs([joined(text) for text in block], teacher(block), student(block))

    pairs = chain_pairs(blocks(), _block_sizes(len(texts)))
    origin = AlignmentOrigin(method, form, teacher.digest, student.digest)
    return tabulate(pairs, len(texts), origin)


def align_tokens(
    texts: Sequence[Text],
    teacher: Sequence[TokenizedText],
    student: Sequence[TokenizedText],
    find_pairs: PairFinder,
) -> TextPairs:
    """Map texts whose tokens are there already.

    Args:
        texts: The text set.
        teacher: The teacher's tokens of each text.
        student: The student's tokens of each text.
        find_pairs: The map, see :func:`pair_finder`; it remembers pieces from call to call.
    """
    strings = [joined(text) for text in texts]

    def blocks() -> Iterator[TextPairs]:
        for start in range(0, len(texts), TEXTS_PER_BLOCK):
            block = slice(start, start + TEXTS_PER_BLOCK)
            yield find_pairs(strings[block], teacher[block], student[block])

    return chain_pairs(blocks(), _block_sizes(len(texts)))


def pair_finder(
    teacher: TextTokenizer, student: TextTokenizer, method: AlignmentMethod
) -> PairFinder:
    """Build the map of a method for two tokenizers.

    Raises:
        ConfigError: The method is unknown.
    """
    if method not in METHODS:
        close = get_close_matches(method, METHODS)
        hint = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(METHODS)}"
        raise ConfigError(f"unknown alignment method {method!r}; {hint}")
    return METHODS[method](teacher, student)


def _block_sizes(texts: int) -> list[int]:
    return [min(TEXTS_PER_BLOCK, texts - start) for start in range(0, texts, TEXTS_PER_BLOCK)]
