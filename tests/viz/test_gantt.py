"""Gantt charts: fixed positions, merged bars, refusals."""

from xml.etree import ElementTree

import pytest

from viz import FigureError, render
from viz.gantt import Bar, Gantt, Track, merged, to_dot

CHART = Gantt("t", "c", (Track("w0", "threads"), Track("w1", "threads")), (Bar(0, 0, 1, "A"), Bar(1, 1, 2, "B")))


def test_same_chart_gives_same_text() -> None:
    assert to_dot(CHART) == to_dot(CHART)
    assert "layout=nop2" in to_dot(CHART)


def test_svg_holds_lanes_bars_and_hover_text() -> None:
    svg = render(to_dot(CHART)).decode()
    assert all(f">{text}</text>" in svg for text in ("w0", "w1", "A", "B", "threads"))
    assert "<title>A</title>" in svg


@pytest.mark.parametrize("name", ["&lt;b\\N\\l", "<b>a</b>", "quote\" and '", "x" * 20_000])
def test_any_name_is_drawn_as_it_is(name: str) -> None:
    root = ElementTree.fromstring(render(to_dot(Gantt(name, name, (Track(name, name),), (Bar(0, 0, 1, name),)))))
    said = [element.text for element in root.iter() if element.text]
    # Title, caption, owner, lane and bar, each with a text on hover; of a name without room, that of the bar is whole.
    assert said.count(name) == (1 if len(name) > 1000 else 10)


def test_png_and_pdf_come_from_the_same_text() -> None:
    assert render(to_dot(CHART), "png")[1:4] == b"PNG"
    assert render(to_dot(CHART), "pdf")[:4] == b"%PDF"


def test_many_short_bars_become_few() -> None:
    bars = [Bar(0, i * 1e-6, (i + 1) * 1e-6) for i in range(10_000)]
    drawn = merged(bars, 2e-5)
    assert len(drawn) < 300
    assert sum(bar.count for bar in drawn) == 10_000


def test_empty_chart_draws() -> None:
    assert "digraph" in to_dot(Gantt())


@pytest.mark.parametrize(
    ("bar", "message"),
    [
        (Bar(2, 0, 1, "A"), "'A' is on lane 2; the chart has 2 lanes"),
        (Bar(0, 2, 1, "A"), "'A' runs from 2 to 1 s"),
        (Bar(0, 0, 1, "A", group="GPU:0"), "'A' is of group 'GPU:0'"),
    ],
)
def test_wrong_bars_are_refused(bar: Bar, message: str) -> None:
    with pytest.raises(FigureError, match=message):
        Gantt(tracks=CHART.tracks, bars=(bar,))
