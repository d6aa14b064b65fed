import pytest
from matplotlib.figure import Figure

from emo.report import write_figure
from emo.report.figure import _draw, points_of
from emo.report.results import collect


def test_the_same_results_give_the_same_bytes(fake):
    names = [fake.folder / name for name in ("1.png", "1.svg", "2.png", "2.svg")]
    for png, svg in (names[:2], names[2:]):
        write_figure(fake.study, fake.runs, fake.speeds, png, svg)
    assert names[0].read_bytes() == names[2].read_bytes()
    assert names[1].read_bytes() == names[3].read_bytes()
    assert names[0].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in names[1].read_bytes()


def results(fake):
    return collect(fake.study.study, fake.runs, fake.speeds)[0]


def test_points_hold_what_the_files_hold(fake):
    teacher, undistilled, pooled, emo = points_of(results(fake))
    assert (teacher.speed, emo.speed) == (80.0, 640.0)
    assert teacher.area > undistilled.area == emo.area
    assert teacher.deviation is None
    assert emo.deviation > 0
    assert emo.label.startswith("emo\n")
    assert emo.label.endswith("17.4 M parameters")
    assert emo.score == pytest.approx(100 * results(fake).methods["emo"].average().mean)
    assert len({point.style for point in (teacher, undistilled, pooled, emo)}) == 4
    assert sum(point.dodge for point in (undistilled, pooled, emo)) == 0


def test_points_and_bars_are_in_sight_and_apart(fake):
    figure = _draw([results(fake)])
    figure.canvas.draw()
    panel = figure.axes[0]
    lines = [container[0] for container in panel.containers]
    places = [tuple(line.get_transform().transform(line.get_xydata()[0])) for line in lines]
    assert all(panel.get_window_extent().contains(*place) for place in places)
    assert len(places) == 4
    students = sorted(x for x, _ in places[1:])
    assert min(b - a for a, b in zip(students, students[1:], strict=False)) > 10


def test_the_legend_lies_inside_the_figure_and_beside_the_panel(fake):
    figure: Figure = _draw([results(fake)])
    panel = figure.axes[0]
    figure.canvas.draw()
    legend = panel.get_legend().get_window_extent()
    assert legend.x0 >= panel.get_window_extent().x1
    assert legend.x1 <= figure.bbox.x1
