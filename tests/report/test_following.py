"""What a reader follows, sorts, copies, prints, and does on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from simplace.analysis.path_groups import group_by_layer
from simplace.analysis.schedule import schedule_placement
from simplace.devices.device_set import local_devices
from simplace.pipeline import place_program
from simplace.placement.placement import Placement
from simplace.result import Result
from simplace.views.text import verdict
from tests.lowering.worlds import call_program, function
from tests.partition import collective_worlds as collectives
from tests.report import worlds
from tests.report.conftest import Opened
from tests.views import graphs
from tests.worlds import constant, node, place, shipped

Open = Callable[[Result], Opened]
MARKED = "search.all.map((node) => state.program.name(node)).sort()"


def not_granted() -> Placement:
    """Place three ops on the CPU that requested a GPU."""
    lines = [constant("a", (4,), "/cpu:0")]
    lines += [node(f"text_{i}", "AsString", "a", device="/gpu:0") for i in range(3)]
    return place(*lines)


def refused() -> Placement:
    """Refuse two ops that are colocated and ask for different devices, in a graph of others."""
    together = 'attr { key: "_class" value { list { s: "loc:@model/one" } } }'
    return place(
        constant("c", (2,)),
        node("model/one", "Relu", "c", device="/gpu:0"),
        node("model/other", "Relu", "model/one", device="/cpu:0", extra=together),
        *[node(f"x{i}", "Relu", "c") for i in range(20)],
        soft=False,
    )


def compiled() -> Placement:
    """Place a call that XLA compiles: two ops on GPU:0."""
    body = "r = Relu(x) {T=float}\nn = Neg(r:activations:0) {T=float}"
    step = function("step(x: float) -> y: float", body, {"y": "n:y:0"})
    call = "c = PartitionedCall(a:y:0) @/device:GPU:0 {f=fn('step'), Tin=(float,), Tout=(float,), _XlaMustCompile=True}"
    caller = function("f(x: float) -> y: float", f"a = Neg(x) {{T=float}}\n{call}", {"y": "c:output:0"})
    return place_program(call_program(caller, step), local_devices([("CPU", 1), ("GPU", 1)]), shipped())


def test_a_finding_marks_all_its_nodes_and_steps_through_them(opened: Open) -> None:
    page = opened(worlds.result(not_granted()))
    (link,) = [link for link in page.all("[data-finding]") if "3 nodes" in link.text]
    link.click()
    assert page.value(MARKED) == ["text_0", "text_1", "text_2"]
    assert page.find("#steps").text.endswith("request not granted: 1 of 3")
    seen = [page.find("#details h2").text]
    for _ in range(3):
        page.press("n")
        seen.append(page.find("#details h2").text)
    assert seen == ["text_0", "text_1", "text_2", "text_0"]
    page.find("#steps [aria-label='End the search']").click()
    assert page.all("#graph .match, #graph .pill") == []
    assert not page.find("#steps").is_displayed()


def test_a_line_of_copies_is_clicked_and_followed(opened: Open) -> None:
    page = opened(worlds.towers())
    wire = page.value(
        "[...document.querySelectorAll('.wire')].findIndex((wire) => graph.wires[wire.dataset.wire].ways)"
    )
    page.run("graph.press(document.querySelectorAll('.wire')[arguments[0]])", wire)
    assert page.find("#details h2").text == "3 copies, 512 B"
    entries = [entry.text for entry in page.all("#details li")]
    assert entries[0] == "C0 → G0 float32 [8,8], 256 B: batch start tower/dense_0/MatMul tower/dense_1/MatMul"
    assert [entry.partition(" float32")[0] for entry in entries] == ["C0 → G0", "C0 → G0", "G0 → C0"]


def test_collectives_are_one_bar_across_that_is_clicked_and_followed(opened: Open) -> None:
    members = [collectives.member(f"a{i}", f"x{i}", i, "key") for i in (0, 1)]
    world = place(*collectives.SHARED, collectives.scalar("key", 7), *collectives.INPUTS, *members)
    page = opened(worlds.result(world))
    assert [bar.text for bar in page.all("#graph .volume")] == ["all-reduce ×1, 48 B per GPU"]
    assert page.value("graph.shown.bars[0].arms.length") == 2
    page.find("#graph .volume").click()
    assert page.value(MARKED) == ["a0", "a1"]
    assert page.find("#steps").text.endswith("all-reduce: 2 nodes")
    page.find("#tab-copies").click()
    page.find("#panel-copies tbody tr .follow").click()
    assert page.value(MARKED) == ["a0", "a1"]
    assert page.find("#details h2").text == "a0"


def test_a_row_of_copies_is_followed_into_the_graph(opened: Open) -> None:
    page = opened(worlds.towers())
    page.find("#tab-copies").click()
    page.find("#panel-copies tbody tr .follow").click()
    assert page.find("#panel-graph").is_displayed()
    assert page.find("#steps").text.endswith("copy of batch:0: 1 of 4")
    assert page.find("#details h2").text == "batch"


def test_tables_sort_and_are_copied_as_text(opened: Open) -> None:
    page = opened(worlds.towers())
    devices = "[...document.querySelectorAll('#panel-summary tbody tr')].map((row) => row.cells[0].textContent)"
    first = page.value(devices)
    heading = page.find("#panel-summary thead th:nth-child(2) .sort")
    heading.click()
    heading.click()
    assert page.find("#panel-summary thead th:nth-child(2)").get_attribute("aria-sort") == "descending"
    assert page.value(devices) == [first[1], first[2], first[0]]
    page.find("#tab-copies").click()
    sizes = "[...document.querySelectorAll('#panel-copies tbody tr')].map((row) => row.cells[3].textContent)"
    assert page.value(sizes)[0] == "256 B"
    page.find("#panel-copies thead th:nth-child(4) .sort").click()
    assert page.value(sizes)[0] == "unknown size"
    page.run("window.given = ''; copyText = async (text) => { window.given = text; }")
    page.find("#panel-copies .copy-text").click()
    rows = [row.split("\t") for row in page.value("window.given").split("\n")]
    assert rows[0] == ["copy", "tensor", "type", "size", "used by"]
    assert [
        "CPU:0 → GPU:0",
        "batch:0",
        "float32 [8,8]",
        "256",
        "start tower/dense_0/MatMul tower/dense_1/MatMul",
    ] in rows
    assert {len(row) for row in rows} == {5}


def test_a_table_is_copied_whole_though_it_shows_fifty_rows(opened: Open) -> None:
    page = opened(worlds.towers())
    page.run(
        "const column = {title: 'n', key: (n) => n, cell: (n) => String(n)};"
        "window.table = new SortedTable([column], [...Array(120).keys()].reverse())"
    )
    assert page.value("table.body.rows.length") == 50
    page.run("table.sort(0)")
    assert page.value("table.body.rows[0].textContent") == "0"
    assert page.value("table.text().split('\\n').length") == 121


def test_why_devices_wait_is_said_first_and_layers_move_the_chart(opened: Open) -> None:
    world = worlds.towers()
    simulated = schedule_placement(world.programs[0].placement)
    page = opened(world)
    assert page.find(".answers").text == f"{verdict.write_verdict(simulated)} schedule"
    page.find(".answers a").click()
    assert page.find("#panel-schedule").is_displayed()
    busy = page.value("state.program.schedule.busy")
    assert [tuple(row) for row in busy["rows"]] == list(verdict.device_time_table(simulated).rows)
    columns = page.value("state.program.schedule.layers")
    layers = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert {one["name"]: one["time"] for one in layers}.items() <= {
        one.name: one.time for one in group_by_layer(simulated)
    }.items()
    shortest = min(range(len(layers)), key=lambda i: layers[i]["to"] - layers[i]["from"])
    page.run("document.querySelectorAll('#panel-schedule button.link')[arguments[0]].click()", shortest)
    view = page.value("schedule.view")
    assert view["from"] <= layers[shortest]["from"]
    assert layers[shortest]["to"] <= view["to"]
    length = layers[shortest]["to"] - layers[shortest]["from"]
    assert view["to"] - view["from"] <= max(50, 1.11 * length) < page.value("state.program.schedule.makespan")


def test_a_refused_graph_is_red_and_draws_the_conflict(opened: Open) -> None:
    page = opened(worlds.result(refused()))
    answer = page.find(".answers .refused")
    assert answer.text == "✗ TensorFlow refuses this graph (INVALID_ARGUMENT)."
    assert page.value("getComputedStyle(document.querySelector('.answers .refused')).color") == "rgb(176, 0, 32)"
    red = [box.get_attribute("aria-label") for box in page.all("#graph .box.refused")]
    assert red == [
        "model/one, Relu · requests /gpu:0, not placed, part of the conflict",
        "model/other, Relu · requests /cpu:0, not placed, part of the conflict",
    ]
    assert len(page.all("#graph .edge.conflict")) == 1
    assert page.find("#graph .conflict-label").text == "colocation attribute"
    assert page.value("graph.tree.size(0)") == 23


def test_what_xla_compiles_is_told_and_found(opened: Open) -> None:
    page = opened(worlds.result(compiled()))
    assert "compiled by XLA" in page.find("#panel-summary").text
    page.find("#search").send_keys("relu")
    assert page.value(MARKED) == ["c"]
    page.press("\ue007")
    assert page.value("graph.elements.get(graph.focused).getAttribute('aria-label')").startswith(
        "c, XLA: 2 ops · PartitionedCall"
    )
    said = page.find("#details").text
    assert "step is compiled by XLA into one kernel: each of its ops together with 1 other." in said
    rows = [row.text for row in page.all("#details tbody tr")]
    assert [row.split()[:2] for row in rows] == [["Relu", "c/r"], ["Neg", "c/n"]]


def test_paper_has_the_overview_and_the_reasons_of_what_matters(opened: Open) -> None:
    page = opened(worlds.result(not_granted()))
    page.run("choose('grouping', 'scope'); showGraph(); go(2); openTab('copies')")
    before = page.value("[byId('grouping').value, graph.selected, state.view, location.hash]")
    page.run("dispatchEvent(new Event('beforeprint'))")
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert page.find("#panel-summary").is_displayed()
        assert page.find("#panel-graph").is_displayed()
        assert not page.find(".toolbar").is_displayed()
        printed = page.find("#printed").text
        assert "request not granted: 3 nodes" in printed
        assert "text_0 (AsString) on CPU:0" in printed
        left, top, width, height = map(float, page.value("graph.svg.getAttribute('viewBox')").split())
        assert (left, top) == (-10, -10)
        assert (width, height) == tuple(page.value("[graph.size.width + 20, graph.size.height + 20]"))
        assert page.value("graph.viewport.getAttribute('transform')") is None
        assert page.value("graph.layout.aspect") < 1
        canvas = page.value("byId('canvas').getBoundingClientRect().toJSON()")
        assert canvas["height"] == pytest.approx(min(1.25, 700 / (width - 20)) * (height - 20), abs=25)
        assert not page.find(".answers a").is_displayed()
    finally:
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        page.run("dispatchEvent(new Event('afterprint'))")
    assert page.value("[byId('grouping').value, graph.selected, state.view, location.hash]") == before
    assert page.value("graph.svg.getAttribute('viewBox')") is None


@pytest.fixture
def phone(browser: object) -> Iterator[None]:
    def resize(width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)  # type: ignore[attr-defined]

    resize(390, 844)
    yield
    resize(1400, 900)


SMALL = """[...document.querySelectorAll("button, select, input, [role=tab], [role=option], a.link, summary")]
  .filter((one) => one.checkVisibility() && !one.closest(".unseen"))
  .map((one) => one.type === "checkbox" ? one.closest("label") : one)
  .filter((one) => one.getBoundingClientRect().height < 44).map((one) => one.outerHTML.slice(0, 80))"""


@pytest.mark.usefixtures("phone")
def test_a_phone_scrolls_down_only_and_fingers_hit(opened: Open) -> None:
    page = opened(worlds.agreed(graphs.towers(2), moved="tower_1/dense_0/Relu"))
    for tab in ("graph", "summary", "copies", "schedule", "agreement"):
        page.run("openTab(arguments[0])", tab)
        assert page.value("document.documentElement.scrollWidth") <= 390, tab
        panel = page.find(f"#panel-{tab}")
        assert panel.is_displayed()
        assert page.value("byId(arguments[0]).scrollWidth <= 390", f"panel-{tab}"), tab
        assert page.value(SMALL) == [], tab
    page.run("openTab('graph'); go(0)")
    assert page.value("document.documentElement.scrollWidth") <= 390
    assert page.value(SMALL) == []


@pytest.mark.usefixtures("phone")
def test_the_reasons_of_a_node_leave_room_for_the_graph(opened: Open) -> None:
    page = opened(worlds.result(graphs.training_step(12)))
    page.run("go(state.program.find('model/dense_7/MatMul'))")
    height = "byId('canvas').getBoundingClientRect().height"
    assert page.value(height) > 250
    assert page.value("byId('search').checkVisibility()") is False
    page.run("follow([1, 2, 3], 'three')")
    assert page.find("#steps").is_displayed()
    page.find("#details .close").click()
    assert page.value("byId('search').checkVisibility()") is True


@pytest.mark.usefixtures("phone")
def test_there_is_no_map_on_a_phone(opened: Open) -> None:
    page = opened(worlds.result(graphs.training_step(12)))
    page.run("graph.zoom(3)")
    assert page.value("byId('minimap').checkVisibility() || byId('map').checkVisibility()") is False


def test_there_is_no_map_over_a_low_graph(opened: Open) -> None:
    page = opened(worlds.result(graphs.training_step(12)))
    page.run("graph.zoom(3); byId('canvas').style.flex = '0 0 120px'")
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.value("byId('minimap').checkVisibility()") is False
    page.run("byId('canvas').style.flex = '0 0 400px'")
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.value("byId('minimap').checkVisibility()") is True


def test_no_table_of_the_summary_is_cut(opened: Open) -> None:
    line = "programs/of_a_long_name/train_the_model.py:1234"
    page = opened(worlds.with_eager(worlds.result(graphs.towers(2)), line))
    tables = page.value("[...document.querySelectorAll('#panel-summary .scroll')].map((one) => one.clientWidth)")
    wanted = page.value("[...document.querySelectorAll('#panel-summary .scroll')].map((one) => one.scrollWidth)")
    assert wanted == tables
    assert len(tables) == 2


def test_a_button_turns_the_page_dark_and_light(opened: Open) -> None:
    page = opened(worlds.towers())
    colours = (
        "[getComputedStyle(document.documentElement).backgroundColor,"
        " getComputedStyle(document.querySelector('#graph .box.open .body')).fill]"
    )
    light = page.value(colours)
    button = page.find("#theme")
    assert button.text == "Dark"
    button.click()
    assert page.value("getComputedStyle(document.documentElement).backgroundColor") == "rgb(20, 23, 28)"
    assert page.value(colours)[1] != light[1]
    assert button.text == "Light"
    button.click()
    assert page.value(colours) == light
