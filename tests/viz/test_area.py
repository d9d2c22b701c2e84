"""Area charts: columns, levels, refusals, the golden text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from viz import FigureError, Group, render
from viz.area import Area, AreaChart, columns, levels, to_dot
from viz.style import STYLES

GPU = Group("g", "GPU:0", kind="GPU")
CHART = AreaChart(
    "t", "c", (Area(GPU, ((0.0, 10.0), (1.0, 80.0), (1.01, 20.0)), 100.0, ("at the peak", "x")), Area(GPU, ())), 2.0
)


def test_dot_is_the_golden_text(golden: Callable[[str, str], None]) -> None:
    golden("area.dot", to_dot(CHART))


LAYERS = AreaChart(
    "t", "c", (Area(GPU, ((0.0, 1.0), (1.0, 2.0)), back=((0.0, 3.0), (1.5, 2.0)), line=((0.0, 1.0), (0.5, 4.0))),), 2.0,
    key=("run", "ready", "threads"), least=1.0,
)  # fmt: skip


def test_layers_and_their_key_are_the_golden_text(golden: Callable[[str, str], None]) -> None:
    golden("area_layers.dot", to_dot(LAYERS))


@pytest.mark.parametrize("which", ["back", "line"])
def test_wrong_points_of_a_layer_are_refused(which: str) -> None:
    with pytest.raises(FigureError, match="an amount below 0"):
        AreaChart(areas=(Area(GPU, (), **{which: ((0.0, -1.0),)}),))  # type: ignore[arg-type]


def test_svg_is_the_golden_text(golden: Callable[[str, str], None]) -> None:
    golden("area.svg", render(to_dot(CHART)).decode())


@pytest.mark.parametrize("style", STYLES)
def test_each_style_draws(style: str) -> None:
    assert render(to_dot(CHART, STYLES[style]), "png")[1:4] == b"PNG"


def test_a_short_peak_fills_a_column() -> None:
    drawn = columns(CHART.areas[0].points, 2.0, 10)
    assert max(amount for _, _, amount in drawn) == 80.0
    assert [drawn[0][0], drawn[-1][1]] == [0, 10]


@pytest.mark.parametrize("highest", [1, 3, 1000, 1 << 30, 5e11])
def test_levels_are_few_and_round(highest: float) -> None:
    found = levels(highest)
    assert 2 <= len(found) <= 6
    assert found[-1] <= highest


@pytest.mark.parametrize(
    ("points", "message"),
    [(((2.0, 1.0), (1.0, 1.0)), "not in the order of time"), (((0.0, -1.0),), "an amount below 0")],
)
def test_wrong_points_are_refused(points: tuple[tuple[float, float], ...], message: str) -> None:
    with pytest.raises(FigureError, match=message):
        AreaChart(areas=(Area(GPU, points),))


def test_an_empty_chart_draws() -> None:
    assert "digraph" in to_dot(AreaChart())
