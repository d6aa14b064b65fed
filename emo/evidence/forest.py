"""``forest.svg``: the difference of each method from the baseline, with its interval."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from emo.evidence.pair import PairEvidence
from emo.report.contrasts import Verdict
from emo.report.drawing import drawing_style, save_svg

WIDTH_INCHES = 7.0
ROW_INCHES = 0.24
MARGIN_INCHES = 1.1
"""Height that title and axis of a panel take."""
STYLES: dict[Verdict, tuple[str, str]] = {
    "better": ("#0072B2", "^"),
    "worse": ("#D55E00", "v"),
    "no significant difference": ("#777777", "o"),
}
"""Colour and marker: nothing is told by colour alone."""


def write_forest(pairs: Sequence[PairEvidence], baseline: str, out: Path) -> None:
    """Draw a panel for each teacher and student, the greatest difference at the top.

    The same results give the same bytes.

    Args:
        pairs: Results of a study.
        baseline: What methods are compared with.
        out: The SVG file to write.
    """
    with drawing_style():
        save_svg(draw_forest(pairs, baseline), out)


def draw_forest(pairs: Sequence[PairEvidence], baseline: str) -> Figure:
    """Return the figure."""
    heights = [ROW_INCHES * len(pair.against(baseline)) + MARGIN_INCHES for pair in pairs]
    figure = Figure(figsize=(WIDTH_INCHES, sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(pairs), squeeze=False, height_ratios=heights)[:, 0]
    for panel, pair in zip(panels, pairs, strict=True):
        _draw_panel(panel, pair, baseline)
    return figure


def _draw_panel(panel: Axes, pair: PairEvidence, baseline: str) -> None:
    contrasts = pair.against(baseline)
    panel.axvline(0.0, color="#AAAAAA", linewidth=0.8)
    for row, contrast in enumerate(contrasts.values()):
        low, mean, high = (
            100 * value
            for value in (
                contrast.difference.low,
                contrast.difference.mean,
                contrast.difference.high,
            )
        )
        colour, marker = STYLES[contrast.verdict]
        panel.plot([low, high], [row, row], color=colour, linewidth=1.4)
        panel.plot(mean, row, color=colour, marker=marker, linestyle="none", label=contrast.verdict)
    panel.set_yticks(range(len(contrasts)), labels=[*contrasts])
    panel.set_ylim(max(len(contrasts), 1) - 0.5, -0.5)
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.grid(axis="x", color="#E5E5E5", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.set_title(f"{pair.teacher} to {pair.student}", loc="left")
    panel.set_xlabel(f"average of families minus that of {baseline}, points, 95 % interval")
    handles, labels = panel.get_legend_handles_labels()
    told = dict(zip(labels, handles, strict=True))
    panel.legend(
        told.values(), told.keys(), loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False
    )
