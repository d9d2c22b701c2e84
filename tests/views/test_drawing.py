"""Figures as files: kinds, styles, and the refusals."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from simplace.analysis.schedule import schedule_placement
from simplace.commands.figures import STYLES as WORDS
from simplace.errors import DrawingError
from simplace.result import Placed
from simplace.views.figures.drawing import Picture, choose_figure, draw_picture
from simplace.views.figures.placed_figures import CHARTS, FIGURES
from tests.views import graphs
from viz.style import STYLES

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", [*FIGURES, *CHARTS])
@pytest.mark.parametrize("style", STYLES)
def test_each_figure_is_drawn_in_each_style_the_same_twice(name: str, style: str) -> None:
    placement = graphs.towers(2)
    made = (
        FIGURES[name](Placed(placement), 40)
        if name in FIGURES
        else CHARTS[name](schedule_placement(placement, costs="flat"))
    )
    drawing = draw_picture(made, "f.svg", style)
    assert drawing == draw_picture(made, "f.svg", style)
    root = ElementTree.fromstring(drawing)
    assert [child.tag for child in root][:2] == [f"{SVG}title", f"{SVG}desc"]
    assert "by the rules of TensorFlow 2.21.0" in (root[1].text or "")
    assert draw_picture(made, "f.dot", style).startswith(b"digraph")


def test_the_command_line_knows_all_styles() -> None:
    assert tuple(STYLES) == WORDS


def test_a_wrong_name_lists_the_choices(tmp_path: Path) -> None:
    figure = FIGURES["placement"](Placed(graphs.towers(1)), 40)
    with pytest.raises(DrawingError, match=r"a figure's name ends in \.svg, \.png, \.pdf, \.dot"):
        draw_picture(figure, "f.gif")
    with pytest.raises(DrawingError, match="'neon' is not a style of figures; there are: dark, paper, screen, slide"):
        draw_picture(figure, "f.svg", "neon")
    with pytest.raises(DrawingError, match="'pie' is not a figure of this; there are: a, b"):
        choose_figure("pie", ["b", "a"])
    with pytest.raises(DrawingError, match="cannot write"):
        Picture(figure).save(tmp_path / "no" / "f.dot")
