"""Area charts: stacked bands and their key, levels, pages, refusals, the golden text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.figure_layout import measure_chart
from viz import FigureError, render
from viz.area import Area, AreaChart, Band
from viz.area_drawing import levels, to_dot
from viz.stack import add_up, cut_columns, find_pieces, find_room
from viz.style import STYLES

WEIGHTS = Band("weights", ((0.0, 10.0),), note="10 B")
LAYER = Band("dense", ((0.0, 0.0), (1.0, 80.0), (1.01, 20.0)), "GPU", 0, "upright", "80 B")
CHART = AreaChart(
    "t",
    "c; d",
    (Area("GPU:0: up to 90", (WEIGHTS, LAYER), 100.0, "at the peak", ("x",), marks_peak=True), Area("GPU:1: up to 0")),
    2.0,
)
MOMENTS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), max_size=8).map(lambda them: tuple(sorted(them)))


def test_dot_is_the_golden_text(golden: Callable[[str, str], None]) -> None:
    golden("area.dot", to_dot(CHART))


def test_a_line_and_its_meaning_are_the_golden_text(golden: Callable[[str, str], None]) -> None:
    run = Band("CPU:0", ((0.0, 1.0), (1.0, 2.0)))
    area = Area("run", (run,), line=((0.0, 1.0), (0.5, 4.0)), meaning="threads")
    golden("area_line.dot", to_dot(AreaChart("t", "c", (area,), 2.0, least=1.0)))


def test_svg_is_the_golden_text(golden: Callable[[str, str], None]) -> None:
    golden("area.svg", render(to_dot(CHART)).decode())


def test_times_that_one_points_at_have_their_error() -> None:
    run = AreaChart("t", "c", (Area("run", (Band("CPU:0", ((0.0, 1.0),)),)),), 2.0, error=0.25)
    assert "CPU:0: 1 at 0 ± 25%" in to_dot(run)
    assert "±" not in to_dot(replace(run, error=0.0))


@pytest.mark.parametrize("style", STYLES)
def test_each_style_draws(style: str) -> None:
    assert render(to_dot(CHART, STYLES[style]), "png")[1:4] == b"PNG"


def test_a_page_without_room_leaves_out_the_lightest_panels_and_says_so() -> None:
    areas = tuple(Area(f"GPU:{i}: up to {i}", (LAYER,), weight=float(i % 3)) for i in range(5))
    dot = to_dot(AreaChart("t", "c", areas), STYLES["slide"])
    left = [i for i in range(5) if f"<b>GPU:{i}: up to {i}</b>" not in dot]
    assert left == sorted([3, 0, 4, 1][: len(left)])
    assert 0 < len(left) < 5
    assert f"c; no room for {', '.join(f'GPU:{i}' for i in left)}" in dot


@pytest.mark.parametrize("words", range(1, 12))
def test_text_on_a_slide_keeps_its_size(words: int) -> None:
    areas = tuple(Area(f"GPU:{i}: up to {i}", (LAYER,) * 7, weight=float(i)) for i in range(9))
    dot = to_dot(AreaChart("t", "; ".join(["a long caption"] * words), areas), STYLES["slide"])
    assert measure_chart(dot).text >= STYLES["slide"].least


def test_few_panels_on_a_slide_have_large_text() -> None:
    one, two, three = (
        measure_chart(to_dot(AreaChart("t", "c", tuple(Area(f"GPU:{i}", (LAYER,)) for i in range(count))),
                             STYLES["slide"])).text for count in (1, 2, 3)
    )  # fmt: skip
    assert one > two > three >= STYLES["slide"].least


def test_print_has_no_title_but_what_is_left_out() -> None:
    few, many = (
        AreaChart("the title", "the caption", tuple(Area(f"GPU:{i}: x", (LAYER,)) for i in range(n))) for n in (1, 20)
    )
    dots = [to_dot(chart, STYLES["paper"]) for chart in (few, many)]
    assert [[words in dot for words in ("the title", "the caption", "no room for")] for dot in dots] == [
        [False, False, False],
        [False, False, True],
    ]


def test_a_peak_that_lasts_no_time_is_added_up() -> None:
    bands = (((0.0, 1.0), (2.0, 9.0), (2.0, 3.0)), ((0.0, 5.0), (2.0, 5.0), (2.0, 0.0)))
    assert add_up(bands) == [(0.0, (1.0, 5.0)), (2.0, (9.0, 5.0)), (2.0, (3.0, 0.0))]
    assert cut_columns(bands, 4.0, 4)[1:] == [(1.0, 5.0), (9.0, 5.0), (3.0, 0.0)]


@given(st.lists(MOMENTS, min_size=1, max_size=4), st.integers(1, 40))
def test_columns_show_the_largest_sum_of_any_moment(bands: list[tuple[tuple[int, int], ...]], count: int) -> None:
    columns = cut_columns(bands, 60, count)
    moments = add_up(bands)
    assert max(map(sum, columns)) == max((sum(amounts) for _, amounts in moments), default=0)
    assert set(columns) <= {amounts for _, amounts in moments} | {(0.0,) * len(bands)}


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30), st.integers(1, 8), st.integers(1, 5))
def test_a_text_stands_within_its_band(columns: list[tuple[int, int]], wide: int, high: int) -> None:
    pieces = find_pieces(columns, 1, 1.0)
    found = find_room(pieces, wide, high)
    if found is None:
        return
    start = round(found[0] - wide / 2)
    covered = columns[start : start + wide]
    assert len(covered) == wide
    low, top = max(below for below, _ in covered), min(below + own for below, own in covered)
    assert low + high / 2 <= found[1] <= top - high / 2


def test_a_band_too_thin_for_its_name_has_it_in_the_key_alone() -> None:
    thin = Band("thin", ((0.0, 1.0),))
    dot = to_dot(AreaChart("t", "c", (Area("a", (thin, Band("broad", ((0.0, 500.0),)))),), 1.0))
    assert (
        dot.count("label=thin") + dot.count('label="thin'),
        dot.count('label="broad') + dot.count("label=broad"),
    ) == (
        1,
        2,
    )


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
        AreaChart(areas=(Area("a", (Band("b", points),)),))
    with pytest.raises(FigureError, match=message):
        AreaChart(areas=(Area("a", line=points),))


def test_an_empty_chart_draws() -> None:
    assert "digraph" in to_dot(AreaChart())
