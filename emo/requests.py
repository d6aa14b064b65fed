"""What a method asks of the alignment and of the teacher, by name.

Two methods that ask for the same share one file, so the name says everything that the file
depends on besides teacher, student and text set.
"""

import re
from dataclasses import dataclass
from typing import Literal

from emo.config import EmoPaperSettings, EmoSettings, Family, MethodSettings
from emo.errors import ConfigError

_NAME = re.compile(
    r"emo-k(?P<layers>[1-9][0-9]*)-m(?P<rows>[1-9][0-9]*)|emo-paper-k(?P<paper_layers>[1-9][0-9]*)"
)


@dataclass(frozen=True, slots=True)
class RowRequest:
    """Attention rows that a method compares.

    Attributes:
        form: ``emo``, the most important mapped pairs of the text itself, or ``emo-paper``, a third
            of the mapped types of the paper's normalised text.
        layers: How many of the last student layers are compared.
        rows: Most pairs of a text; None where the form decides.
    """

    form: Literal["emo", "emo-paper"]
    layers: int
    rows: int | None = None

    @property
    def alignment(self) -> str:
        """The map that rows are selected from."""
        return "mined" if self.form == "emo" else "mined-types"

    @property
    def name(self) -> str:
        """Folder name of the stored rows.

        >>> RowRequest("emo", layers=1, rows=8).name
        'emo-k1-m8'
        """
        most = "" if self.rows is None else f"-m{self.rows}"
        return f"{self.form}-k{self.layers}{most}"


@dataclass(frozen=True, slots=True)
class SignalRequest:
    """Everything a method asks for besides the signals that every store holds.

    Attributes:
        alignment: The map for the transport term, None without one.
        rows: The attention rows, None without an attention term.
    """

    alignment: Literal["mined", "mined-masses"] | None = None
    rows: RowRequest | None = None


def signal_request(settings: MethodSettings, family: Family) -> SignalRequest:
    """Return what a method asks for on a text set of a family."""
    match settings:
        case EmoSettings():
            rows = RowRequest("emo", settings.layers, settings.rows)
            return SignalRequest(
                "mined" if settings.transport else None, rows if settings.attention else None
            )
        case EmoPaperSettings():
            return SignalRequest("mined-masses", RowRequest("emo-paper", settings.layers[family]))
        case _:
            return SignalRequest()


def request_from_name(name: str) -> RowRequest:
    """Read a request back from its name.

    Raises:
        ConfigError: It is no name of a request.

    >>> request_from_name("emo-paper-k2")
    RowRequest(form='emo-paper', layers=2, rows=None)
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ConfigError(
            f"`{name}` names no attention rows; write emo-k1-m8 (last student layers, most rows of "
            "a text) or emo-paper-k2 (last student layers)"
        )
    if match["layers"]:
        return RowRequest("emo", int(match["layers"]), int(match["rows"]))
    return RowRequest("emo-paper", int(match["paper_layers"]))
