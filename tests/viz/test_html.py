from __future__ import annotations

import re
from xml.etree import ElementTree

from device_figures import every_mark, towers

from viz import NotebookFigure, inline_svg


def test_inline_svg_is_one_element() -> None:
    drawing = inline_svg(every_mark())
    assert drawing.startswith("<svg ")
    assert drawing.endswith("</svg>")
    ElementTree.fromstring(drawing)


def test_two_figures_on_a_page_share_no_id() -> None:
    one, other = (set(re.findall(r'\bid="([^"]+)"', inline_svg(figure()))) for figure in (every_mark, towers))
    assert one
    assert not one & other


def test_notebook_shows_the_drawing() -> None:
    assert NotebookFigure(towers())._repr_html_() == inline_svg(towers())
