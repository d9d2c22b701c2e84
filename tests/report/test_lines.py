"""Where lines of the page run: past boxes, and below the titles of open scopes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from simplace.placement.placement import Placement
from simplace.result import Result
from tests.report import worlds
from tests.report.conftest import Opened
from tests.views import graphs
from tests.worlds import constant, node, place

Open = Callable[[Result], Opened]
# The lines of what shows that run through a box at neither of their ends, as "from > to: boxes".
CROSSED = """
  const found = [];
  const path = draw("path", {});
  const visit = (layout) => {
    for (const edge of [...layout.edges, ...layout.ports]) {
      path.setAttribute("d", edge.isStraight ? polyline(edge.points) : curve(edge.points));
      const hit = new Set();
      for (let at = 0; at <= path.getTotalLength(); at += 3) {
        const { x, y } = path.getPointAtLength(at);
        for (const box of layout.boxes) {
          const isInside = x > box.x + 2 && x < box.x + box.width - 2 && y > box.y + 2 && y < box.y + box.height - 2;
          if (isInside && box.item !== edge.from && box.item !== edge.to) hit.add(box.label);
        }
      }
      if (hit.size) found.push(`${edge.from} > ${edge.to}: ${[...hit]}`);
    }
    for (const box of layout.boxes) if (box.inner) visit(box.inner);
  };
  visit(graph.layout.inside(graph.root));
  return found;
"""
# The lines of each node that shows, selected in turn, that run through a box or a title: upright and level pieces.
CROSSED_BY_NEAR = """
  const found = [];
  const leaves = graph.visibleItems.filter((item) => !graph.tree.isScope(item)).slice(0, 30);
  let drawn = 0;
  for (const item of leaves) {
    graph.selected = graph.tree.leaf[item];
    graph.render();
    for (const path of document.querySelectorAll("#graph .edge.near")) {
      drawn += 1;
      const d = path.getAttribute("d");
      const points = [...d.matchAll(/(-?[\\d.]+),(-?[\\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]);
      const isCrossed = (block) => points.slice(1).some(([x, y], i) => {
        const [fromX, fromY] = points[i];
        return Math.max(x, fromX) > block.x + 1 && Math.min(x, fromX) < block.x + block.width - 1
          && Math.max(y, fromY) > block.y + 1 && Math.min(y, fromY) < block.y + block.height - 1;
      });
      if (d.includes("C") || graph.blocks.some(isCrossed)) found.push(`${item}: ${d}`);
    }
  }
  return [drawn, found];
"""
OPEN_LARGEST = """
  const closed = graph.visibleItems.filter((item) => graph.tree.isScope(item) && !graph.open.has(item));
  closed.sort((one, other) => graph.tree.size(other) - graph.tree.size(one));
  if (closed.length) graph.toggle(closed[0]);
  return closed.length > 0;
"""
# How many lines run under a title, and how many of these are drawn before it.
COVERED = """
  const pairs = [...document.querySelectorAll("#graph .heading")].flatMap((heading) => {
    const { left, right, top, bottom } = heading.getBoundingClientRect();
    const isUnder = (line) => {
      const box = line.getBoundingClientRect();
      return box.left < right && box.right > left && box.top < bottom && box.bottom > top;
    };
    return [...document.querySelectorAll("#graph .edge.outward")].filter(isUnder).map((line) => [heading, line]);
  });
  const isAbove = ([heading, line]) => heading.compareDocumentPosition(line) & Node.DOCUMENT_POSITION_PRECEDING;
  return [pairs.length, pairs.filter(isAbove).length];
"""


def wired_at_random() -> Placement:
    """Place ops in scopes within scopes, each reading two that were made before, near or far."""
    random = Random(7)
    names = ["a/in"]
    lines = [constant("a/in", (4,), "/cpu:0")]
    for i in range(160):
        near = names[-random.randint(1, min(5, len(names)))]
        name = f"{random.choice('ab')}/{random.choice('cde')}/op_{i}"
        lines.append(node(name, "Add", near, random.choice(names), device=f"/gpu:{random.randrange(2)}"))
        names.append(name)
    return place(*lines)


@pytest.mark.parametrize("make", [wired_at_random, graphs.loop, lambda: graphs.training_step(12)])
def test_no_line_runs_through_a_box(opened: Open, make: Callable[[], Placement]) -> None:
    page = opened(worlds.result(make()))
    lines = 0
    for grouping in ("overview", "scope", "layer"):
        page.run("choose('grouping', arguments[0]); showGraph()", grouping)
        for _ in range(12):
            assert page.run(CROSSED) == [], grouping
            lines += page.value("document.querySelectorAll('#graph .edge').length")
            if not page.run(OPEN_LARGEST):
                break
    assert lines > 20


def test_a_title_stands_above_the_lines_that_enter(opened: Open) -> None:
    page = opened(worlds.result(graphs.training_step(12)))
    for _ in range(6):
        page.run(OPEN_LARGEST)
    titles = page.value(
        "[...document.querySelectorAll('.heading')].map((one) => one.querySelector('text').textContent)"
    )
    shown = "graph.visibleItems.filter((item) => graph.open.has(item)).map((item) => `− ${graph.tree.label[item]}`)"
    assert sorted(titles) == sorted(page.value(shown))
    covered, above = page.run(COVERED)
    assert covered == above
    assert covered > 0


def test_the_title_of_an_open_device_is_whole(opened: Open) -> None:
    lines = [constant("x", (8, 8), "/cpu:0")]
    for gpu in range(4):
        lines.append(node(f"tower_{gpu}/Relu", "Relu", "x", device=f"/gpu:{gpu}"))
    page = opened(worlds.result(place(*lines, gpus=4)))
    texts = page.value("[...document.querySelectorAll('#graph .heading .sub')].map((one) => one.textContent)")
    assert "4 devices alike, 1 op each" in texts


@pytest.mark.parametrize("opening", [0, 3])
@pytest.mark.parametrize("world", [lambda: graphs.towers(2), lambda: graphs.training_step(30), graphs.loop])
def test_no_line_of_a_selected_node_crosses_a_box(opened: Open, world: Callable[[], Placement], opening: int) -> None:
    page = opened(worlds.result(world()))
    for _ in range(opening):
        page.run(OPEN_LARGEST)
    drawn, crossed = page.run(CROSSED_BY_NEAR)
    assert (drawn > 3, crossed) == (True, [])


def test_lines_that_no_way_is_free_for_run_beneath_boxes(opened: Open) -> None:
    page = opened(worlds.towers())
    page.run("graph.selected = 0; graph.render()")
    order = page.value("[...graph.viewport.children].map((one) => one.getAttribute('class').split(' ').at(-1))")
    near, box = (
        order.index("near"),
        page.value("[...graph.viewport.children].findIndex((one) => one.matches('.box:not(.open)'))"),
    )
    assert near < box
    around = "[[-9, -9, 30, 5], [-9, 14, 30, 5], [-9, -9, 5, 28], [16, -9, 5, 28]]"  # walls
    blocks = f"{around}.map(([x, y, width, height]) => ({{ x, y, width, height }}))"
    start, end = "{ x: 5, y: 0, way: 1 }", "{ x: 5, y: 90, way: -1 }"
    assert page.value(f"routed({start}, [{end}], {blocks})") == [None]
    assert page.value(f"routed({start}, [{end}], [])") == [[{"x": 5, "y": 0}, {"x": 5, "y": 90}]]
