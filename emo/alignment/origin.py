"""What an alignment was made from, so that its file can say so."""

from dataclasses import dataclass

from emo.config import AlignmentMethod, TextForm


@dataclass(frozen=True, slots=True)
class AlignmentOrigin:
    """What decides an alignment beside its texts and the code.

    Attributes:
        method: Name of the map.
        form: Which form of the texts was aligned: "original", or "normalised" as the paper does.
        teacher: Digest of the teacher's tokenizer, see :attr:`emo.tokens.TextTokenizer.digest`.
        student: The same of the student's.
    """

    method: AlignmentMethod
    form: TextForm
    teacher: str
    student: str
