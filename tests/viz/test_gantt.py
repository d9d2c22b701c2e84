"""Gantt charts: fixed positions, merged bars, refusals."""

import re
from collections import Counter
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as some

from benchmarks.figure_layout import measure_chart
from viz import FigureError, Group, render
from viz.bar_labels import BarLabels
from viz.gantt import Bar, Gantt, Track
from viz.gantt_drawing import merged, to_dot
from viz.style import STYLES

LETTER = r'\blabel="?([a-z])(?:\\l"|")?[ \]]'  # the text of a node that is one letter
CHART = Gantt("t", "c", (Track("w0", "threads"), Track("w1", "threads")), (Bar(0, 0, 1, "A"), Bar(1, 1, 2, "B")))


def test_same_chart_gives_same_text() -> None:
    assert to_dot(CHART) == to_dot(CHART)
    assert "layout=nop2" in to_dot(CHART)


def test_svg_holds_tracks_bars_and_hover_text() -> None:
    svg = render(to_dot(CHART)).decode()
    assert all(f">{text}</text>" in svg for text in ("w0", "w1", "A", "B", "threads"))
    assert "<title>A</title>" in svg


@pytest.mark.parametrize("name", ["&lt;b\\N\\l", "<b>a</b>", "quote\" and '", "x" * 20_000])
def test_any_name_is_drawn_as_it_is(name: str) -> None:
    root = ElementTree.fromstring(render(to_dot(Gantt(name, name, (Track(name, name),), (Bar(0, 0, 1, name),)))))
    said = [element.text for element in root.iter() if element.text]
    # Title, caption, owner, track and bar, each with a text on hover; a bar's name is never shortened.
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
        (Bar(2, 0, 1, "A"), "'A' is on track 2; the chart has 2 tracks"),
        (Bar(0, 2, 1, "A"), "'A' runs from 2 to 1 s"),
        (Bar(0, 0, 1, "A", group="GPU:0"), "'A' is of group 'GPU:0'"),
    ],
)
def test_wrong_bars_are_refused(bar: Bar, message: str) -> None:
    with pytest.raises(FigureError, match=message):
        Gantt(tracks=CHART.tracks, bars=(bar,))


def list_texts(bars: list[Bar], points_a_second: float) -> tuple[list[str], list[tuple[str, str, int, float]]]:
    labels = BarLabels(bars, bars, lambda bar: (bar.end - bar.start) * points_a_second, 8)
    return [labels.text(bar) for bar in bars], [(e.code, e.label, e.count, e.seconds) for e in labels.entries]


def test_a_label_without_room_is_a_letter_that_the_table_explains() -> None:
    bars = [Bar(0, 0, 5, "Conv2D"), Bar(0, 5, 6, "Conv2D"), Bar(0, 6, 7, "MatMul"), Bar(0, 7, 7.1, "Cast")]
    assert list_texts(bars, 10) == (
        ["Conv2D", "a", "b", ""],
        [("a", "Conv2D", 2, 6), ("b", "MatMul", 1, 1), ("", "Cast", 1, pytest.approx(0.1))],
    )


def test_a_label_that_is_written_everywhere_is_not_in_the_table() -> None:
    assert list_texts([Bar(0, 0, 1, "Conv2D"), Bar(0, 1, 2, "Add")], 100) == (["Conv2D", "Add"], [])


@given(
    some.sampled_from(sorted(STYLES)), some.integers(1, 20), some.lists(some.integers(6, 9), min_size=15, max_size=40)
)
def test_each_letter_in_a_bar_is_in_the_table(style: str, lanes: int, lengths: list[int]) -> None:
    tracks = tuple(Track(f"lane {i}", "GPU") for i in range(lanes))
    bars = [Bar(i % lanes, 10 * i, 10 * i + length, f"ApplyGradientDescent{i}") for i, length in enumerate(lengths)]
    letters = Counter(re.findall(LETTER, to_dot(Gantt("title", "", tracks, tuple(bars)), STYLES[style])))
    assert all(count == 2 for count in letters.values()), "each stands in its one bar and in the table"


def test_copies_have_no_letters_and_launches_no_time_of_their_own() -> None:
    bars = [Bar(0, 0, 1, "4 KiB", kind="copy"), Bar(1, 0, 1, "Neg", kind="launch"), Bar(0, 1, 2.5, "Neg")]
    assert list_texts(bars, 10) == (["", "a", "a"], [("a", "Neg", 1, 1.5)])


def test_a_page_without_room_leaves_out_the_tracks_that_do_least() -> None:
    tracks = tuple(Track(f"track {i}", "GPU") for i in range(30))
    bars = (*(Bar(i, 0, 1 + i, f"op{i}") for i in range(30)), Bar(0, 40, 90, "all", kind="collective", rows=30))
    dot = to_dot(Gantt("t", "one\ntwo", tracks, bars), STYLES["slide"])
    left = [i for i in range(30) if f'"track {i}\\l"' not in dot]
    assert left == list(range(len(left)))
    assert 10 < len(left) < 30
    assert f"no room for {len(left)} of 30 tracks" in dot
    assert '"one' in dot
    assert '"two' not in dot


def test_a_page_without_room_has_one_track_for_all_collectives() -> None:
    tracks = (*(Track("compute", f"GPU:{i}") for i in range(8)), *(Track(f"GPU:{i}", "collectives") for i in range(8)))
    bars = [Bar(i, 0, 1, "Op") for i in range(8)]
    halves = [Bar(first, 1, 2, "all-reduce", kind="collective", rows=2) for first in (8, 12)]
    dot = to_dot(Gantt("t", "c", tracks, (*bars, *halves)), STYLES["slide"])
    assert all(f'"GPU:{i} compute\\l"' in dot for i in range(8))
    assert dot.count('"collectives\\l"') == 1
    assert dot.count('tooltip="all-reduce"') == 1
    assert "no room" not in dot


def test_print_has_no_title_but_what_is_left_out() -> None:
    tracks = tuple(Track(f"track {i}", "GPU") for i in range(60))
    few, many = (Gantt("the title", "the caption", tracks[:n], tuple(Bar(i, 0, 1, "op") for i in range(n)))
                 for n in (2, 60))  # fmt: skip
    dots = [to_dot(chart, STYLES["paper"]) for chart in (few, many)]
    assert [[words in dot for words in ("the title", "the caption", "no room for")] for dot in dots] == [
        [False, False, False],
        [False, False, True],
    ]


def test_bars_drawn_as_one_count_in_the_table() -> None:
    bars = [Bar(0, i * 1e-6, (i + 1) * 1e-6, "Mul" if i % 2 else "Einsum") for i in range(100)]
    dot = to_dot(Gantt("t", "", CHART.tracks, (*bars, Bar(1, 0, 1, "MatMul"))))
    assert "Einsum ×50, 50 µs" in dot
    assert "Mul ×50, 50 µs" in dot


def test_a_slide_is_filled_from_its_top_and_of_few_bars_the_text_is_large() -> None:
    few, many = (Gantt("t", "", tuple(Track(f"track {i}") for i in range(count)),
                       tuple(Bar(i, 0, 1, "Op") for i in range(count))) for count in (1, 22))  # fmt: skip
    found = [to_dot(chart, STYLES["slide"]) for chart in (few, many)]
    assert measure_chart(found[0]).text == pytest.approx(2 * STYLES["slide"].least, abs=0.1)
    assert measure_chart(found[1]).text == pytest.approx(STYLES["slide"].least, abs=0.1)
    for dot in found:
        page = re.search(r'viewport="([\d.]+),([\d.]+),([\d.]+),[\d.]+,([-\d.]+)"', dot)
        drawn = re.search(r'bb="0,0,[\d.]+,([\d.]+)"', dot)
        assert page
        assert drawn
        high, scale, middle = float(page[2]), float(page[3]), float(page[4])
        assert middle + high / scale / 2 == pytest.approx(float(drawn[1]), abs=0.1), "the heading is at the top"
        assert float(drawn[1]) * scale > 0.6 * high


def test_more_is_written_where_it_has_room() -> None:
    bars = [Bar(0, 0, 9, "MatMul", more="A MatMul"), Bar(0, 9, 12, "MatMul", more="A MatMul")]
    assert list_texts(bars, 12) == (["A MatMul", "MatMul"], [])


SHARED = (
    Bar(0, 0, 4, "Conv2D", "g1", "launch"), Bar(0, 4, 5, "Conv2D", "g1", "launch"),
    Bar(0, 5, 7, "Relu", "g2", "launch"), Bar(1, 0, 1, "Conv2D", "g1"),
)  # fmt: skip
GPUS = tuple(Group(f"g{i}", f"GPU:{i}", kind="GPU", index=i, badge="abc"[i]) for i in range(3))


def test_on_a_track_of_several_groups_a_bar_has_the_badge_of_its_own() -> None:
    labels = BarLabels(SHARED, SHARED, lambda bar: (bar.end - bar.start) * 13, 8, {"g1": "1", "g2": "2"})
    assert [labels.text(bar) for bar in SHARED] == ["1: Conv2D", "1", "2a", "b"]


def test_bars_without_room_for_a_badge_share_one() -> None:
    def count_badges(end: float) -> Counter[str]:
        short = tuple(Bar(0, i, i + 1, "Neg", f"g{i // 20}", "launch") for i in range(60))
        chart = Gantt(tracks=(Track("thread"),), bars=short, groups=GPUS, end=end)
        return Counter(re.findall(r"\blabel=([abc])[ \]]", to_dot(chart)))

    in_legend = {"a": 1, "b": 1, "c": 1}
    assert count_badges(300) == {"a": 2, "b": 2, "c": 2}
    assert count_badges(30_000) == in_legend, "three bars of a few points have no room"


def test_without_rows_for_owners_all_labels_of_an_owner_name_it_where_one_must() -> None:
    tracks = [Track(f"thread {i}", "process") for i in range(2)]
    tracks += [Track(label, f"GPU:{i}") for i in range(9) for label in ("compute", "to host", *["from host"] * (i < 1))]
    bars = tuple(Bar(i, 0, 1, f"op{i}") for i in range(len(tracks)))
    dot = to_dot(Gantt("t", "", tuple(tracks), bars), STYLES["slide"])
    assert [text in dot for text in ('"thread 1\\l"', '"GPU:0 from host\\l"', '"GPU:0\\l"')] == [True, True, False]
