"""What an alignment was made from, so that its file can say so."""

from dataclasses import asdict, dataclass
from pathlib import Path

from emo.config_methods import AlignmentMethod, TextForm
from emo.errors import DataError


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


def require_origin(origin: AlignmentOrigin | None, path: Path, **expected: str) -> None:
    """Check that an alignment was made as its reader needs it.

    Positions of another map, another form of the text or another tokenizer would fit often enough
    to go unnoticed.

    Args:
        origin: What the file says.
        path: The file.
        expected: Some of the attributes of :class:`AlignmentOrigin`.

    Raises:
        DataError: The file says nothing, or something else.
    """
    if origin is None:
        raise DataError(f"{path}: does not say what it was made from; make it with `emo align`")
    told = asdict(origin)
    wrong = [name for name, value in expected.items() if told[name] != value]
    if wrong:
        names = " and ".join(
            f"{name} {told[name]!r} instead of {expected[name]!r}"
            if name in ("method", "form")
            else f"another {name} tokenizer, prompt or maximum length"
            for name in wrong
        )
        raise DataError(f"{path}: was made with {names}; align again with `emo align`")
