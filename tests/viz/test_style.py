"""Styles: legible on their ground, at the size of their page."""

from __future__ import annotations

import re

import pytest
from device_figures import FIGURES, every_mark, two_gpu_model

from benchmarks.figure_layout import measure_layout
from viz import Edge, Figure, FigureError, Node, draw, to_dot
from viz.figure import Arrangement, Group
from viz.palette import contrast, look
from viz.style import STYLES, style_called


@pytest.mark.parametrize("name", STYLES)
@pytest.mark.parametrize("kind", ["CPU", "GPU", "TPU", "NPU"])
def test_text_reads_well_on_each_fill(name: str, kind: str) -> None:
    style = STYLES[name]
    assert contrast(style.ink, style.paper) >= 12
    assert contrast(style.faint_ink, style.paper) >= 7
    for index in range(24):
        found = look(Group("", "", kind=kind, index=index), style)
        assert contrast(style.ink, found.fill) >= 7
        assert contrast(style.faint_ink, found.fill) >= 4.5
        assert contrast(style.faint_ink, found.backdrop) >= 7
        assert contrast(style.warning_ink, found.fill) >= 4.5


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_print_is_as_wide_as_a_column_or_a_page(name: str) -> None:
    width, height = inches(draw(FIGURES[name](), style=STYLES["paper"]))
    assert width in (240 / 72, 7.0)
    assert height <= 9.3


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_print_is_as_wide_as_pdf(name: str) -> None:
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", draw(FIGURES[name](), "pdf", style=STYLES["paper"]))
    assert box is not None
    assert float(box[1]) in (240, 504)


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_a_slide_is_16_by_9(name: str) -> None:
    assert inches(draw(FIGURES[name](), style=STYLES["slide"])) == (40 / 3, 7.5)


@pytest.mark.parametrize("arrangement", ["ranks", "rows"])
@pytest.mark.parametrize("style", STYLES)
def test_a_figure_of_nothing_says_so(style: str, arrangement: Arrangement) -> None:
    drawing = draw(Figure(title="A title", arrangement=arrangement), style=STYLES[style])
    assert b"nothing to draw</text>" in drawing
    assert (b"A title</text>" in drawing) == STYLES[style].has_heading
    assert inches(drawing) >= (0.9, 0.1)


def test_no_text_is_smaller_than_7_points_in_a_column() -> None:
    drawing = draw(two_gpu_model(), style=STYLES["paper"]).decode()
    scale = re.search(r"scale\(([\d.]+)", drawing)
    assert scale is not None
    wanted = STYLES["paper"].scale
    sizes = {float(size) * wanted for size in re.findall(r'font-size="([\d.]+)"', drawing)}
    assert min(sizes) >= 7


def test_dark_has_no_light_ground() -> None:
    text = to_dot(every_mark(), STYLES["dark"])
    assert "#ffffff" not in text
    assert "#1a1a1a" not in text


def test_an_unknown_style_lists_the_choices() -> None:
    with pytest.raises(FigureError, match="'neon' is not a style; choose from: screen, paper, slide, dark"):
        style_called("neon")


def inches(svg: bytes) -> tuple[float, float]:
    found = re.search(rb'width="([\d.]+)pt" height="([\d.]+)pt"', svg) or re.search(
        rb'height="([\d.]+)pt".*?width="([\d.]+)pt"', svg
    )
    assert found is not None
    return float(found[1]) / 72, float(found[2]) / 72


def test_devices_fill_a_slide_also_below_a_long_caption() -> None:
    groups = (Group("c", "CPU:0", kind="CPU"), Group("g", "GPU:0", kind="GPU"), Group("h", "GPU:1", kind="GPU"))
    nodes = (Node("c0", "_Arg", "", "c"), *(Node(f"{one}0", "MatMul, Reshape, …", "32 types", one) for one in "gh"))
    edges = (
        Edge("c0", "g0", "copy", "2 × int32 [8,32] · 2 KiB"),
        Edge("c0", "h0", "copy", "int32 [8,32] · 1 KiB"),
        Edge("g0", "h0", "copy", "15 tensors · 512 KiB"),
        Edge("h0", "g0", "copy", "83 tensors · 4.7 MiB", 1, True, True),
    )
    caption = " · ".join(["what else the reader has to know of it"] * 9)
    figure = Figure(
        "A title of about as many letters as a slide has", caption, groups, nodes, edges, arrangement="rows"
    )
    assert measure_layout(figure, STYLES["slide"]).empty < 0.35
