"""The figure: what each model scores against how fast it embeds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from emo.config import Study
from emo.outputs import atomic_file
from emo.report.averages import Spread
from emo.report.drawing import drawing_style, save_svg
from emo.report.results import PairResults, collect
from emo.report.runs import TEACHER, UNDISTILLED, Run
from emo.report.speeds import Speed

# Okabe and Ito's colours without yellow, which is too pale on white; markers differ as well, so
# that nothing is told by colour alone.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "D", "^", "v", "P")
TEACHER_STYLE = ("#000000", "*")
UNDISTILLED_STYLE = ("#777777", "X")

PANEL_INCHES = (7.6, 4.4)
MARGIN_INCHES = 1.4
"""Height that title, axis and note take."""
LEGEND_ENTRY_INCHES = 0.42
LEGEND_SHARE = 0.37
"""Share of a panel's width that the legend takes, so that it hides no point."""
DODGE_POINTS = 10.0
"""Students share one speed; their points are drawn side by side, this far apart."""
SMALLEST_AREA, TEACHER_AREA = 60.0, 240.0
ROOM = 1.6
"""Factor of speed left free beside the outermost points."""
ROOM_ABOVE = 0.12
"""Share of the range of scores left free above and below."""
RESOLUTION = 150


@dataclass(frozen=True, slots=True)
class Point:
    """A model in the figure.

    Attributes:
        label: Its name, score and number of weights.
        speed: Texts a second.
        score: Mean average over families, times 100.
        deviation: Its standard deviation over seeds; None for one seed.
        area: Of the marker, in square points; grows with the number of weights.
        style: Colour and marker.
        dodge: Shift to the right, in points.
    """

    label: str
    speed: float
    score: float
    deviation: float | None
    area: float
    style: tuple[str, str]
    dodge: float


def write_figure(
    study: Study, runs: Sequence[Run], speeds: Mapping[str, Speed], png: Path, svg: Path
) -> None:
    """Draw a panel for each teacher and student, as PNG and as SVG.

    The same results give the same bytes.

    Args:
        study: The study.
        runs: All its runs; see :func:`emo.report.load_runs`.
        speeds: Measured speeds of its teachers and students.
        png: The PNG file to write.
        svg: The SVG file to write.

    Raises:
        DataError: A run or a speed is missing.
    """
    with drawing_style():
        figure = _draw(collect(study.study, runs, speeds))
        with atomic_file(png) as temporary:
            # Tight, so that a long name widens the picture and is not cut.
            figure.savefig(
                temporary, dpi=RESOLUTION, bbox_inches="tight", metadata={"Software": None}
            )
        save_svg(figure, svg)


def points_of(results: PairResults) -> list[Point]:
    """Return the points of a panel: the teacher, the undistilled student, the methods."""
    students = [UNDISTILLED, *results.distilled]
    styles = {TEACHER: TEACHER_STYLE, UNDISTILLED: UNDISTILLED_STYLE}
    for number, name in enumerate(results.distilled):
        # A marker is shifted after each round of colours, so that no two methods look alike.
        turn = number // len(COLOURS)
        styles[name] = (COLOURS[number % len(COLOURS)], MARKERS[(number + turn) % len(MARKERS)])
    largest = max(method.parameters for method in results.methods.values())
    points = []
    for name, method in results.methods.items():
        average = method.average()
        deviation = None if average.deviation is None else 100 * average.deviation
        place = students.index(name) - (len(students) - 1) / 2 if name != TEACHER else 0.0
        points.append(
            Point(
                label=_label(results.label(name), average, method.parameters),
                speed=results.speed(name).texts_per_second,
                score=100 * average.mean,
                deviation=deviation,
                area=max(SMALLEST_AREA, TEACHER_AREA * method.parameters / largest),
                style=styles[name],
                dodge=DODGE_POINTS * place,
            )
        )
    return points


def _label(name: str, average: Spread, parameters: int) -> str:
    deviation = "" if average.deviation is None else f" ± {100 * average.deviation:.1f}"
    return f"{name}\n{100 * average.mean:.1f}{deviation}, {parameters / 1e6:.1f} M parameters"


def _draw(results: Sequence[PairResults]) -> Figure:
    width, height = PANEL_INCHES
    models = max(len(pair.methods) for pair in results)
    height = max(height, LEGEND_ENTRY_INCHES * models + MARGIN_INCHES)
    figure = Figure(figsize=(width, height * len(results)))
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(results), squeeze=False)[:, 0]
    for panel, pair in zip(panels, results, strict=True):
        _draw_panel(panel, pair)
    figure.text(
        0.01,
        0.05 / len(results),
        "Students bear the speed of the undistilled one, without heads, and stand side by side.\n"
        "The marker's area grows with the number of parameters. Bars: standard deviation over "
        "seeds.",
        fontsize="small",
        color="#555555",
    )
    figure.subplots_adjust(
        left=0.09,
        right=1 - LEGEND_SHARE,
        bottom=0.22 / len(results),
        top=1 - 0.12 / len(results),
        hspace=0.4,
    )
    return figure


def _draw_panel(panel: Axes, results: PairResults) -> None:
    points = points_of(results)
    for point in points:
        _draw_point(panel, point)
    speeds = [point.speed for point in points]
    panel.set_xscale("log")
    panel.set_xlim(min(speeds) / ROOM, max(speeds) * ROOM)
    # The shifted points lie outside the data coordinates, so limits are not found by themselves.
    panel.set_ylim(*_score_limits(points))
    panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.grid(color="#E5E5E5", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_title(f"{results.teacher}\nto {results.student}", loc="left")
    panel.set_xlabel("texts a second on this machine (log scale)")
    panel.set_ylabel("average of families, main metrics x 100")
    panel.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, labelspacing=0.9)


def _score_limits(points: Sequence[Point]) -> tuple[float, float]:
    low = min(point.score - (point.deviation or 0.0) for point in points)
    high = max(point.score + (point.deviation or 0.0) for point in points)
    room = max(ROOM_ABOVE * (high - low), 0.5)
    return low - room, high + room


def _draw_point(panel: Axes, point: Point) -> None:
    colour, marker = point.style
    figure = panel.get_figure()
    assert figure is not None  # panels come from a figure
    shift = ScaledTranslation(point.dodge / 72, 0, figure.dpi_scale_trans)
    panel.errorbar(
        point.speed,
        point.score,
        yerr=point.deviation,
        color=colour,
        fmt=marker,
        markersize=math.sqrt(point.area),
        markeredgecolor="white",
        capsize=2.5,
        transform=panel.transData + shift,
        label=point.label,
    )
