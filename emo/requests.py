"""What a method asks of the alignment and of the teacher, by name.

Two methods that ask for the same share one file, so the name says everything that the file
depends on besides teacher, student and text set.
"""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from emo.config_methods import (
    AlignmentMethod,
    Family,
    MethodSettings,
    TextForm,
    TokenTerms,
)
from emo.errors import ConfigError

ALIGNMENT_PATTERN = f"({'|'.join(get_args(AlignmentMethod))})\\.({'|'.join(get_args(TextForm))})"
"""What an alignment's name looks like, as a regular expression."""

ROWS_PATTERN = (
    r"(original|normalised)\.(mined|mined-dp|span|mined-types)\.(text|content)\.(m\d+|third)"
    r"\.(paired|apart)\.(k\d+|\d+-\d+(_\d+-\d+)*)"
)
"""The same of a row request's name."""

_ALIGNMENT = re.compile(ALIGNMENT_PATTERN)
_ROWS = re.compile(ROWS_PATTERN)


@dataclass(frozen=True, slots=True)
class AlignmentRequest:
    """A map between the tokens of the two sides.

    Attributes:
        method: How tokens are mapped.
        text: Whether the text itself is mapped, or the paper's normalised form of it.
    """

    method: AlignmentMethod
    text: TextForm = "original"

    @property
    def name(self) -> str:
        """File name of the map, without its suffix.

        >>> AlignmentRequest("mined").name
        'mined.original'
        """
        return f"{self.method}.{self.text}"

    @classmethod
    def from_name(cls, name: str) -> "AlignmentRequest":
        """Read a request back from its name.

        Raises:
            ConfigError: It is no name of an alignment.

        >>> AlignmentRequest.from_name("mined-types.normalised")
        AlignmentRequest(method='mined-types', text='normalised')
        """
        match = _ALIGNMENT.fullmatch(name)
        if match is None:
            raise ConfigError(f"`{name}` names no alignment; write one like mined.original")
        return cls(*match.groups())  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class RowRequest:
    """Attention rows that a method compares; for the choices see ``emo.config_methods``.

    Attributes:
        map: The map that pairs the rows, and the text that is compared.
        ranking: Which importance chooses among the mapped pairs.
        rows: Most pairs of a text; None for a third of the mapped ones.
        paired: Whether the two sides stay paired; else each is sorted by its own order.
        layers: How many of the last student layers are compared, by the block map; or the pairs
            (student layer, teacher layer) themselves.
    """

    map: AlignmentRequest
    ranking: Literal["text", "content"]
    rows: int | None
    paired: bool
    layers: int | tuple[tuple[int, int], ...]

    @property
    def depth(self) -> int:
        """Number of layers that are compared."""
        return self.layers if isinstance(self.layers, int) else len(self.layers)

    @property
    def own_ranking(self) -> bool:
        """Whether rows are ranked by importance in another text than the set's own.

        That of its own texts is among the signals of the teacher.
        """
        return self.ranking == "content" or self.map.text == "normalised"

    def student_layers(self, student_depth: int) -> list[int]:
        """Return the 0-based student layers that are compared."""
        if isinstance(self.layers, int):
            return list(range(student_depth - self.layers, student_depth))
        return [student for student, _ in self.layers]

    @property
    def name(self) -> str:
        """Folder name of the stored rows.

        >>> RowRequest(AlignmentRequest("mined"), "text", 8, True, ((1, 3), (2, 11))).name
        'original.mined.text.m8.paired.1-3_2-11'
        """
        return ".".join(
            [
                self.map.text,
                self.map.method,
                self.ranking,
                "third" if self.rows is None else f"m{self.rows}",
                "paired" if self.paired else "apart",
                f"k{self.layers}"
                if isinstance(self.layers, int)
                else "_".join(f"{student}-{teacher}" for student, teacher in self.layers),
            ]
        )

    @classmethod
    def from_name(cls, name: str) -> "RowRequest":
        """Read a request back from its name.

        Raises:
            ConfigError: It is no name of a request.

        >>> RowRequest.from_name("normalised.mined-types.content.third.apart.k2").depth
        2
        """
        if _ROWS.fullmatch(name) is None:
            raise ConfigError(
                f"`{name}` names no attention rows; write text, map, ranking, rows, pairing and "
                "layers as in original.mined.text.m8.paired.k1"
            )
        text, method, ranking, rows, pairing, layers = name.split(".")
        return cls(
            AlignmentRequest.from_name(f"{method}.{text}"),
            "text" if ranking == "text" else "content",
            None if rows == "third" else int(rows.removeprefix("m")),
            pairing == "paired",
            int(layers[1:]) if layers.startswith("k") else _layer_pairs(layers),
        )


@dataclass(frozen=True, slots=True)
class SignalRequest:
    """Everything a method asks for besides the signals that every store holds.

    Attributes:
        alignment: The map for the terms on token states, None without one.
        rows: The attention rows, None without an attention term.
    """

    alignment: AlignmentRequest | None = None
    rows: RowRequest | None = None


def signal_request(settings: MethodSettings, family: Family) -> SignalRequest:
    """Return what a method asks for on a text set of a family."""
    if not isinstance(settings, TokenTerms):
        return SignalRequest()
    compared = any(getattr(settings, weight) for weight in settings.state_weights)
    return SignalRequest(
        AlignmentRequest(settings.mass_map) if compared else None,
        _row_request(settings, family) if settings.attention else None,
    )


def _row_request(settings: TokenTerms, family: Family) -> RowRequest:
    layers = settings.layers
    return RowRequest(
        AlignmentRequest(settings.row_map, settings.row_text),
        settings.row_ranking,
        None if settings.rows == "third" else settings.rows,
        settings.row_pairing == "paired",
        tuple((student, teacher) for student, teacher in layers)
        if isinstance(layers, list)
        else (layers[family] if isinstance(layers, dict) else layers),
    )


def _layer_pairs(text: str) -> tuple[tuple[int, int], ...]:
    pairs = [pair.split("-") for pair in text.split("_")]
    return tuple((int(student), int(teacher)) for student, teacher in pairs)
