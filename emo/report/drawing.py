"""How figures are drawn, so that the same results give the same bytes."""

from contextlib import AbstractContextManager
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from emo.outputs import atomic_file


def drawing_style() -> AbstractContextManager[None]:
    """Return the context in which a figure is drawn and saved."""
    return mpl.rc_context({"svg.hashsalt": "emo", "font.family": "DejaVu Sans", "font.size": 9})


def save_svg(figure: Figure, path: Path) -> None:
    """Write a figure without date and program; a long name widens the picture and is not cut."""
    with atomic_file(path) as temporary:
        figure.savefig(temporary, bbox_inches="tight", metadata={"Date": None, "Creator": None})
