"""The page's first screen and the way through a graph: devices, parts of a step, chains, an address for each."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise

import pytest

from simplace.placement.placement import Placement
from simplace.report.interning import Interner
from simplace.report.overview_data import overview_data
from simplace.result import Placed, Result
from simplace.views.figures.overview_figure import overview_figure
from tests.report import worlds
from tests.report.conftest import Opened
from tests.views import graphs
from tests.worlds import constant, node, place

Open = Callable[[Result], Opened]
PLACES = "graph.tree.partsOf(0).map((item) => graph.tree.label[item])"
# Of every item, whether lines between its parts come back to where they began.
CYCLIC = """(() => {
  const found = [];
  const visit = (item) => {
    if (!graph.tree.isScope(item)) return;
    const parts = graph.tree.partsOf(item);
    if (item && !graph.tree.isPlace(item)) {
      const { all } = { all: graph.layout.inside(item).edges };
      const after = parts.map((part) => all.filter((edge) => edge.from === part).map((edge) => parts.indexOf(edge.to)));
      if (findKnotted(after).some(Boolean)) found.push(graph.tree.label[item]);
    }
    parts.forEach(visit);
  };
  visit(0);
  return found;
})()"""
CLOSED = "graph.visibleItems.findLast((item) => graph.tree.isScope(item) && !graph.open.has(item))"
BOXES = """[graph.elements.get(arguments[0]).querySelector('.body'), graph.svg].map(
    (one) => one.getBoundingClientRect().toJSON())"""
SMALLEST = """Math.min(...[...document.querySelectorAll('#viewport text')].map((text) =>
    parseFloat(getComputedStyle(text).fontSize) * graph.at.scale))"""


def many_gpus(count: int = 4) -> Placement:
    """Place the same chain on some GPUs, each fed from the CPU, with more ops than are shown one by one."""
    lines = [constant("x", (8, 8), "/cpu:0")]
    for gpu in range(count):
        before = "x"
        for i in range(20):
            name = f"tower_{gpu}/dense_{i}/Relu"
            lines.append(node(name, "Relu", before, device=f"/gpu:{gpu}"))
            before = name
    return place(*lines, gpus=count)


def read_overview(placement: Placement) -> dict[str, object]:
    return overview_data(Placed(placement), {d.name: i for i, d in enumerate(placement.devices)}, Interner([""]))


def test_every_node_has_a_place_and_alike_devices_share_one() -> None:
    data = read_overview(many_gpus())
    assert data["places"] == [
        {"label": "CPU:0", "detail": "1 op", "devices": [0]},
        {"label": "GPU:0 … GPU:3", "detail": "4 devices alike, 20 ops each", "devices": [1, 2, 3, 4]},
    ]
    assert data["place"] == [0] + [1] * 80


def test_few_ops_have_no_parts() -> None:
    assert set(read_overview(graphs.towers(2))["part"]) == {-1}  # type: ignore[call-overload]


def test_parts_are_those_of_the_figure() -> None:
    """Few for four GPUs, but many where three of them are drawn as one."""
    towers = [f"tower_{gpu}/step_{i}/Relu" for gpu in range(4) for i in range(13)]
    chain = [constant("x", (8, 8), "/cpu:0"), *(node(f"input/{i}", "Neg", "x", device="/cpu:0") for i in range(5))]
    for gpu in range(4):
        own = towers[gpu * 13 : gpu * 13 + 13]
        chain += [node(new, "Relu", old, device=f"/gpu:{gpu}") for old, new in pairwise(["x", *own])]
    placement = place(*chain, gpus=4)
    drawn = {box.label for box in overview_figure(Placed(placement)).nodes}
    data = read_overview(placement)
    assert {part["label"] for part in data["parts"]} == drawn  # type: ignore[attr-defined, index]
    assert set(data["part"]) == set(range(len(drawn)))  # type: ignore[call-overload]


def test_a_refused_graph_has_no_message_and_nodes_without_a_place() -> None:
    data = read_overview(place(constant("c", (2,)), node("bad", "Relu", "c", device="/gpu:7"), soft=False))
    assert (data["message"], data["places"], data["place"]) == ("", [], [-1, -1])


def test_the_first_screen_is_the_overview(opened: Open) -> None:
    page = opened(worlds.result(graphs.training_step(30)))
    assert page.find("#grouping").get_attribute("value") == "overview"
    assert page.value(PLACES) == ["CPU:0", "GPU:0"]
    assert page.find("#trail").text.startswith("All on GPU:0 but 1 op on CPU:0: ")
    shown = page.value("graph.visibleItems.map((item) => graph.tree.label[item])")
    assert {"GPU:0", "gradients"} <= set(shown)
    assert len(shown) <= 14


def test_a_part_of_alike_devices_shows_the_letters_of_each(opened: Open) -> None:
    """A bar of colours alone would tell no colour-blind reader anything."""
    page = opened(worlds.result(many_gpus(8)))
    bars = page.value("""[...document.querySelectorAll('#viewport .scope:not(.one):not(.open)')].map(
        (box) => [...box.querySelectorAll('.letters')].map((text) => text.textContent))""")
    assert bars
    assert all(letters == [f"G{i}" for i in range(8)] for letters in bars)


def test_alike_devices_are_one_place_that_holds_each(opened: Open) -> None:
    page = opened(worlds.result(many_gpus()))
    assert page.value(PLACES) == ["CPU:0", "GPU:0 … GPU:3"]
    page.run("go(30)")
    path = page.value("graph.tree.path(graph.tree.itemOf[30]).map((item) => graph.tree.label[item])")
    assert path[0] == "GPU:0 … GPU:3"
    assert any(label.split("/")[0] == "GPU:1" for label in path)


@pytest.mark.parametrize("world", [graphs.loop, many_gpus, lambda: graphs.training_step(30), lambda: graphs.chain(500)])
def test_scopes_are_chains_and_hold_every_node_once(opened: Open, world: Callable[[], Placement]) -> None:
    placement = world()
    page = opened(worlds.result(placement))
    assert page.value(CYCLIC) == []
    leaves = page.value("graph.tree.leaf.filter((node) => node >= 0).sort((a, b) => a - b)")
    assert leaves == list(range(len(placement.graph) - 2))


def test_copies_between_two_devices_are_one_line_that_tells_both_ways(opened: Open) -> None:
    page = opened(worlds.towers())
    lines = page.value(
        "graph.shown.edges.map((edge) => [graph.tree.label[edge.from], graph.tree.label[edge.to], ...edgeLines(edge)])"
    )
    assert [[one, other, there[2:], back[2:]] for one, other, there, back in sorted(lines)] == [
        ["CPU:0", "GPU:0", "2 copies, 512 B", "1 copy"],
        ["CPU:0", "GPU:1", "2 copies, 512 B", "1 copy"],
    ]
    assert {there[0] + back[0] for _, _, there, back in lines} <= {"→←", "↓↑"}
    drawn = "[...document.querySelectorAll('svg .wire .edge.copy:not(.outward)')]"
    assert page.value(f"{drawn}.map((line) => !!line.getAttribute('marker-start'))") == [True, True]


def test_one_goes_into_a_scope_and_out_again(opened: Open) -> None:
    page = opened(worlds.result(graphs.training_step(30)))
    item = page.value("graph.visibleItems.find((item) => graph.tree.label[item] === 'gradients')")
    page.run("graph.elements.get(arguments[0]).focus()", item)
    page.press("i")
    assert page.find("#trail").text.startswith("world › GPU:0 › gradients")
    assert page.value("graph.visibleItems.every((one) => graph.tree.above(one).includes(arguments[0]))", item)
    page.press("o")
    assert page.find("#trail").text.startswith("world › GPU:0")
    page.find("#trail button").click()
    assert page.value("graph.root") == 0
    page.find(f"#graph .box[data-item='{item}'] .into").click()
    assert page.value("graph.root") == item


def test_texts_are_never_below_nine_pixels_after_fit(opened: Open) -> None:
    page = opened(worlds.result(graphs.chain(3000)))
    for _ in range(5):
        page.run(f"graph.toggle({CLOSED} ?? 1)")
    page.find("#zoom-fit").click()
    assert page.value(SMALLEST) >= 9
    page.run("graph.enter(graph.tree.partsOf(0)[0])")
    assert page.value(SMALLEST) >= 9


def test_the_screen_fits_what_was_opened(opened: Open) -> None:
    page = opened(worlds.result(graphs.training_step(30)))
    item = page.value("graph.visibleItems.find((item) => graph.tree.label[item] === 'gradients')")
    page.run("graph.toggle(arguments[0])", item)
    box, screen = page.value(BOXES, item)
    assert abs(box["x"] + box["width"] / 2 - screen["x"] - screen["width"] / 2) < 5
    assert 10 <= box["y"] - screen["y"] < 200


def test_a_small_map_shows_where_one_is(opened: Open) -> None:
    page = opened(worlds.towers())
    assert page.value("byId('minimap').hasAttribute('hidden')")
    page.run("graph.zoom(3)")
    assert page.find("#minimap").is_displayed()
    before = page.value("[graph.at.x, graph.at.y]")
    page.find("#minimap").click()
    assert page.value("[graph.at.x, graph.at.y]") != before


def test_the_map_is_put_away_by_a_key_or_a_click_also_on_the_next_page(opened: Open) -> None:
    page = opened(worlds.towers())
    page.run("graph.zoom(3)")
    page.press("m")
    assert not page.find("#minimap").is_displayed()
    page = opened(worlds.towers())
    page.run("graph.zoom(3)")
    assert not page.find("#minimap").is_displayed()
    page.find("#map").click()
    assert page.find("#minimap").is_displayed()
    assert opened(worlds.towers()).value("byId('map').checked")


def shown(page: Opened) -> dict[str, object]:
    return dict(page.value("""{
        group: byId('grouping').value, colour: byId('colouring').value,
        open: [...graph.open].map((item) => graph.tree.address(item)).sort(), inside: graph.tree.address(graph.root),
        selected: graph.selected, search: byId('search').value, view: state.view,
        program: state.number, found: search.all.length }"""))  # fmt: skip


def reload(page: Opened) -> None:
    page.run("document.documentElement.dataset.ready = 'no'; location.reload()")
    page.wait_until_ready()


def test_an_address_shows_all_of_it_again(opened: Open) -> None:
    page = opened(worlds.result(graphs.training_step(30), graphs.chain(300)))
    assert "#" not in page.value("location.href")
    page.run("choose('grouping', 'scope'); showGraph(); doInSteps(search.seek('matmul'))")
    page.run(f"graph.toggle({CLOSED}); go(40)")
    before = shown(page)
    reload(page)
    assert shown(page) == before
    assert page.find("#details h2").text == page.value("state.program.name(40)")
    page.run("showProgram(1); graph.enter(graph.tree.partsOf(0)[0]); openTab('copies')")
    before = shown(page)
    assert before["view"] == "copies"
    reload(page)
    assert shown(page) == before


def test_back_and_forward_walk_the_steps(opened: Open) -> None:
    page = opened(worlds.result(graphs.training_step(30)))
    first = shown(page)
    item = page.value("graph.visibleItems.find((item) => graph.tree.label[item] === 'gradients')")
    page.find(f"#graph .box[data-item='{item}']").click()  # a browser skips steps that nobody's click made
    second = shown(page)
    assert second != first
    page.find("#tab-schedule").click()
    page.browser.back()
    assert shown(page) == second
    page.browser.back()
    assert shown(page) == first
    page.browser.forward()
    assert shown(page) == second


def test_an_address_that_names_what_is_not_there_still_opens(opened: Open) -> None:
    page = opened(worlds.towers())
    page.run("location.hash = 'group=nothing&open=7.7,0,x&inside=9&node=absent&view=none&program=12&search=%ZZ'")
    page.run("address.restore()")
    assert page.value("byId('live').textContent") == "The address names a node that is not in this program: absent"
    assert page.value("[state.view, graph.root, state.number]") == ["graph", 0, 0]


# Boxes in two rows of three, of sizes that differ, and a line from each to each other one.
ALL_TO_ALL = """
  const boxes = [...Array(6).keys()].map((i) => (
    { item: i + 1, width: 150 + 40 * (i % 3), height: 60 + 50 * (i % 2), x: 0, y: 0 }));
  const edges = boxes.flatMap((from) => boxes.filter((to) => to !== from).map((to) => (
    { from: from.item, to: to.item, count: 1, control: 0, copies: new Set([1, 2]), size: 4096, points: [] })));
  arrangePlaces(boxes, edges, [], arguments[0]);
  return [boxes, edges.map(({ points }) => points)];"""


@pytest.mark.parametrize("aspect", [0.5, 1.5, 6])
def test_no_line_between_devices_crosses_a_device_or_lies_on_another(opened: Open, aspect: float) -> None:
    page = opened(worlds.towers())
    boxes, lines = page.run(ALL_TO_ALL, aspect)
    pieces = [[(a["x"], a["y"], b["x"], b["y"]) for a, b in pairwise(line)] for line in lines]
    inside = [
        (piece, box["item"])
        for line in pieces
        for piece in line
        for box in boxes
        if box["x"] < max(piece[0], piece[2]) - 1 and min(piece[0], piece[2]) + 1 < box["x"] + box["width"]
        and box["y"] < max(piece[1], piece[3]) - 1 and min(piece[1], piece[3]) + 1 < box["y"] + box["height"]
    ]  # fmt: skip
    assert inside == []
    upright = [(x, *sorted((y, ty)), i) for i, line in enumerate(pieces) for x, y, tx, ty in line if x == tx]
    level = [(y, *sorted((x, tx)), i) for i, line in enumerate(pieces) for x, y, tx, ty in line if y == ty and x != tx]
    for segments in (upright, level):
        assert [
            (one, other)
            for one, other in combinations(segments, 2)
            if one[3] != other[3] and abs(one[0] - other[0]) < 1
            and min(one[2], other[2]) - max(one[1], other[1]) > 1
        ] == []  # fmt: skip


# A CPU beside a GPU, another GPU below, and lines between them that cross.
THREE = """
  const boxes = [[1, 384, 150], [2, 328, 400], [3, 384, 150]].map(
    ([item, width, height]) => ({ item, width, height, x: 0, y: 0 }));
  const edges = [[1, 2], [2, 1], [1, 3], [2, 3], [3, 2]].map(([from, to]) => (
    { from, to, count: 1, control: 0, copies: new Set([1, 2]), size: 4096, points: [] }));
  arrangePlaces(boxes, edges, [], 1.5);
  return edges.map((edge) => [edge.points, edge.labelAt, edgeTextWidth(edge) / 2 + 4]);"""


def test_the_label_of_a_copy_stands_where_no_other_line_runs_down(opened: Open) -> None:
    lines = opened(worlds.towers()).run(THREE)
    for i, (_, label, half) in enumerate(lines):
        others = [pair for j, (points, *_) in enumerate(lines) if j != i for pair in pairwise(points)]
        assert [
            (a, b)
            for a, b in others
            if a["x"] == b["x"] and abs(a["x"] - label["x"]) < half
            and min(a["y"], b["y"]) < label["y"] < max(a["y"], b["y"])
        ] == []  # fmt: skip
