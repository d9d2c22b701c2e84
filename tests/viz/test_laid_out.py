"""Layouts that are drawn a second time: titles stay above lines in every format, labels apart from each other."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations

import pytest
from device_figures import FIGURES, every_mark

from viz import draw, to_dot
from viz.engine import run_graphviz
from viz.laid_out import finished
from viz.style import SCREEN, STYLES


@pytest.mark.parametrize("style", ["paper", "dark"])
def test_svg_is_the_golden_text(style: str, golden: Callable[[str, str], None]) -> None:
    golden(f"every_mark_{style}.svg", draw(every_mark(), style=STYLES[style]).decode())


def test_each_device_has_its_title_above_the_lines() -> None:
    figure = every_mark()
    text = finished(run_graphviz(to_dot(figure), "dot", 72, 60).decode(), SCREEN)
    last_line = text.rindex("->")
    for group in figure.groups:
        assert text.rindex(f"<b>{group.title}</b>") > last_line


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_no_two_nodes_or_labels_overlap(name: str) -> None:
    laid = run_graphviz(to_dot(FIGURES[name]()), "dot", 72, 60).decode()
    boxes = [box for found in _NODE.finditer(laid) if (box := _box(found[1]))]
    assert boxes
    for one, other in combinations(boxes, 2):
        apart = max(abs(one[i] - other[i]) - (one[i + 2] + other[i + 2]) / 2 for i in (0, 1))
        assert apart >= -0.5, (one, other)


_NODE = re.compile(r'^\t+(?:"(?:[^"\\]|\\.)*"|[^\s">]+)\t+\[(.*?)\];$', re.MULTILINE | re.DOTALL)


def _box(attributes: str) -> tuple[float, float, float, float] | None:
    place = re.search(r'\bpos="([-\d.]+),([-\d.]+)"', attributes)
    width, height = (re.search(rf"\b{side}=([\d.]+)", attributes) for side in ("width", "height"))
    if place is None or width is None or height is None:
        return None
    return float(place[1]), float(place[2]), float(width[1]) * 72, float(height[1]) * 72
