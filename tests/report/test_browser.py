"""The page in a headless Chromium: what a reader sees, does with the mouse, does with keys alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from simplace.analysis.schedule import schedule_placement
from simplace.explain.explanation import Explainer, explain_node
from simplace.result import Result
from tests.executor.linked_worlds import BOTH_FROM_HOST, run, switch
from tests.report import worlds
from tests.report.conftest import Opened
from tests.views import graphs
from tests.worlds import constant, node, place

Open = Callable[[Result], Opened]

ENTER, ESCAPE, DOWN, UP, LEFT, RIGHT, TAB = "\ue007", "\ue00c", "\ue015", "\ue013", "\ue012", "\ue014", "\ue004"
PAGE_DOWN = "\ue00f"
SENTENCES = """state.program.explanation(arguments[0]).map(
    (parts) => parts.map((part) => (typeof part === "string" ? part : part.text)).join(""))"""


def labels(page: Opened) -> list[str]:
    return [box.get_attribute("aria-label") for box in page.all("#graph .box")]


def test_it_says_what_the_summary_says(opened: Open) -> None:
    page = opened(worlds.towers())
    assert page.browser.title == "model.py: where it runs and why"
    assert page.find("header .verdict").text == "agrees with TensorFlow 2.21.0: 15/15 nodes"
    assert [row.text for row in page.all("#panel-summary tbody tr")] == [
        "C0 CPU:0 3 ≥ 512 B 2 copies, unknown size",
        "G0 GPU:0 6 unknown size 2 copies, 512 B",
        "G1 GPU:1 6 unknown size 2 copies, 512 B",
    ]
    assert [entry.text for entry in page.all("#legend > span")] == ["G0 GPU:0 6", "G1 GPU:1 6", "C0 CPU:0 3"]


def test_a_small_graph_shows_every_node(opened: Open) -> None:
    page = opened(worlds.towers())
    shown = [label for label in labels(page) if ", on " in label]
    assert len(shown) == 15
    assert "tower/dense_0/MatMul, MatMul, on GPU:0" in shown


def test_a_page_asks_no_network(opened: Open) -> None:
    page = opened(worlds.towers())
    assert page.value("performance.getEntriesByType('resource').length") == 0
    assert page.value("fetch('https://example.com').then(() => 'sent', () => 'refused')") == "refused"
    assert any("Content Security Policy" in message for message in page.complaints())


def test_a_click_explains_a_node(opened: Open) -> None:
    world = worlds.towers()
    placement = world.programs[0].placement
    page = opened(world)
    page.find("[aria-label^='tower_1/dense_0/MatMul,']").click()
    assert page.find("#details h2").text == "tower_1/dense_0/MatMul"
    said = [line.text for line in page.all("#reasons li")]
    assert said == list(map(str, explain_node(placement, "tower_1/dense_0/MatMul").sentences))
    facts = dict(zip([t.text for t in page.all("#details dt")], [d.text for d in page.all("#details dd")], strict=True))
    assert facts["Runs on"] == "G1 GPU:1"
    assert facts["Kernels"] == "GPU, CPU"
    assert facts["Requested"] == "/gpu:1"
    copied = page.value("document.querySelector('#details').innerText")
    assert "Copied to it 1" in copied
    assert "C0 → G1 float32 [8,8], 256 B: batch" in copied


@pytest.mark.parametrize("world", [worlds.towers, worlds.hostile, lambda: worlds.result(graphs.loop())])
def test_every_node_has_the_sentences_of_explain(opened: Open, world: Callable[[], Result]) -> None:
    result = world()
    placement = result.programs[0].placement
    page = opened(result)
    explainer = Explainer(placement)
    for i in range(2, len(placement.graph)):
        assert page.value(SENTENCES, i - 2) == list(map(str, explainer.explain(i).sentences))


def test_scopes_open_and_close_by_click(opened: Open) -> None:
    page = opened(worlds.result(graphs.training_step(30)))
    page.find("#zoom-fit").click()
    scope = page.find("#graph .box.scope[aria-expanded=false]")
    item, before = scope.get_attribute("data-item"), len(labels(page))
    scope.click()
    again = page.find(f"[data-item='{item}']")
    assert again.get_attribute("aria-expanded") == "true"
    assert len(labels(page)) > before
    assert "open:" in page.find("#live").text or "open:" in page.value("byId('live').textContent")
    page.run("graph.toggle(Number(arguments[0]))", item)
    assert len(labels(page)) == before


def test_the_keyboard_alone_walks_opens_and_explains(opened: Open) -> None:
    page = opened(worlds.result(graphs.training_step(30)))
    page.press(TAB)
    assert page.browser.switch_to.active_element.text == "Skip to the graph"
    page.run("graph.focus()")
    first = page.value("document.activeElement.dataset.item")
    page.press(DOWN)
    assert page.value("document.activeElement.dataset.item") != first
    page.press(UP)
    assert page.value("document.activeElement.dataset.item") == first
    closed = page.value("graph.visibleItems.find((item) => graph.tree.isScope(item) && !graph.open.has(item))")
    page.run("graph.elements.get(arguments[0]).focus()", closed)
    page.press(RIGHT)
    assert page.value("document.activeElement.getAttribute('aria-expanded')") == "true"
    page.press(RIGHT)
    assert page.value("graph.tree.parent[document.activeElement.dataset.item]") == closed
    page.press(LEFT)
    assert int(page.value("document.activeElement.dataset.item")) == closed
    leaf = page.value("graph.visibleItems.find((item) => !graph.tree.isScope(item))")
    page.run("graph.elements.get(arguments[0]).focus()", leaf)
    page.press(ENTER)
    assert page.find("#details").is_displayed()
    page.press(ESCAPE)
    assert not page.find("#details").is_displayed()
    assert int(page.value("document.activeElement.dataset.item")) == leaf


def test_every_box_says_what_it_is(opened: Open) -> None:
    page = opened(worlds.towers())
    assert page.find("#graph").get_attribute("role") == "tree"
    boxes = page.all("#graph .box")
    assert {box.get_attribute("role") for box in boxes} == {"treeitem"}
    assert all(box.get_attribute("aria-label") and box.get_attribute("aria-level") for box in boxes)
    assert [box.get_attribute("tabindex") for box in boxes].count("0") == 1
    assert page.find("#live").get_attribute("aria-live") == "polite"


def test_search_finds_and_shows(opened: Open) -> None:
    page = opened(worlds.result(graphs.training_step(30)))
    page.run("graph.focus()")
    page.press("/")
    page.press("dense_7 matmul gpu:0")
    rows = page.all("#found [role=option]")
    assert [row.text.split("\n")[-2] for row in rows] == ["model/dense_7/MatMul", "gradient_tape/model/dense_7/MatMul"]
    assert page.find("#search").get_attribute("aria-activedescendant") == "found-0"
    page.press(DOWN)
    assert page.find("#search").get_attribute("aria-activedescendant") == "found-1"
    page.press(ENTER)
    assert page.find("#details h2").text == "gradient_tape/model/dense_7/MatMul"
    assert page.find("#graph .selected").get_attribute("aria-label").startswith("gradient_tape/model/dense_7/MatMul,")
    assert page.value("byId('search').getAttribute('aria-expanded')") == "false"


HELD = """graph.visibleItems.filter((item) => graph.tree.isScope(item) && !graph.open.has(item)).map((item) => [
    [...graph.tree.nodes(item)].filter((node) => search.all.includes(node)).length,
    graph.svg.querySelector(`.pill[data-for="${item}"]`)?.textContent ?? "",
    graph.elements.get(item).getAttribute("aria-description") ?? ""])"""


def test_closed_boxes_say_how_many_matches_they_hold(opened: Open) -> None:
    page = opened(worlds.result(graphs.training_step(30)))
    page.find("#search").send_keys("matmul")
    held = page.value(HELD)
    assert sum(count for count, _, _ in held) > 1
    assert {count for count, _, _ in held} > {0}
    for count, pill, spoken in held:
        said = {0: "", 1: "1 match"}.get(count, f"{count} matches")
        assert pill == said
        assert spoken == (f"holds {said}" if count else "")
    page.find("#search").send_keys(ESCAPE, ESCAPE)
    assert page.find("#search").get_attribute("value") == ""
    assert page.all("#graph .match, #graph .pill") == []
    assert not page.find("#steps").is_displayed()


def test_steps_open_the_scopes_of_each_match_and_centre_it(opened: Open) -> None:
    page = opened(worlds.result(graphs.training_step(30)))
    page.find("#search").send_keys("dense_7 matmul")
    found = page.value("search.all.map((node) => state.program.name(node))")
    assert len(found) > 1
    page.press(ENTER)
    page.run("graph.reset(); graph.focus()")
    seen = []
    for key in ["n"] * len(found) + ["p"]:
        page.press(key)
        seen.append(page.find("#details h2").text)
        assert page.value("graph.selected") == page.value("graph.tree.leaf[document.activeElement.dataset.item]")
        assert page.value(CENTRED)
    assert seen == [*found[1:], found[0], found[-1]]
    assert page.find("#steps").text.endswith(f"{len(found)} of {len(found)}")
    page.find("#steps [aria-label='Next match']").click()
    assert page.find("#details h2").text == found[0]
    assert page.value("document.activeElement.getAttribute('aria-label')") == "Next match"


CENTRED = """(() => {
  const parts = [graph.svg, document.querySelector("#graph .selected .body")];
  const [canvas, box] = parts.map((part) => part.getBoundingClientRect());
  const off = (start, length) => Math.abs(canvas[start] + canvas[length] / 2 - box[start] - box[length] / 2);
  return off("left", "width") < 5 && off("top", "height") < 5;
})()"""


def test_the_list_of_matches_grows_as_keys_walk_past_its_end(opened: Open) -> None:
    page = opened(worlds.result(graphs.chain(120)))
    page.find("#search").send_keys("n")
    assert len(page.all("#found [role=option]")) == 50
    page.press(*[PAGE_DOWN] * 5)
    assert len(page.all("#found [role=option]")) == 100
    assert page.find("#found [aria-selected=true]").get_attribute("id") == "found-50"
    assert page.find("#search").get_attribute("aria-activedescendant") == "found-50"
    page.press(ENTER)
    assert page.find("#steps").text.endswith("51 of 120")


def test_skipping_to_the_graph_leaves_another_tab(opened: Open) -> None:
    page = opened(worlds.towers())
    page.run("openTab('copies'); document.querySelector('.skip').focus()")
    page.press(ENTER)
    assert page.find("#panel-graph").is_displayed()
    assert page.value("document.activeElement.getAttribute('role')") == "treeitem"


def test_tab_stops_once_at_the_graph_and_at_an_agreement(opened: Open) -> None:
    page = opened(worlds.towers())
    page.run("byId('collapse').focus()")
    page.press(TAB)
    assert page.value("document.activeElement.getAttribute('role')") == "treeitem"
    page.press(TAB)
    assert page.value("document.activeElement.closest('#canvas')") is None
    page.run("openTab('agreement'); byId('tab-agreement').focus()")
    page.press(TAB)
    assert page.value("document.activeElement.id") == "panel-agreement"


def test_a_search_without_an_answer_says_so(opened: Open) -> None:
    page = opened(worlds.towers())
    page.find("#search").send_keys("nothing like it")
    assert page.find("#found").text == "no match"


def test_pan_zoom_and_fit_move_the_graph(opened: Open) -> None:
    page = opened(worlds.towers())
    first = page.find("#viewport").get_attribute("transform")
    page.find("#zoom-in").click()
    assert page.find("#viewport").get_attribute("transform") != first
    page.run("graph.focus()")
    page.press("0")
    assert page.find("#viewport").get_attribute("transform") == first


def test_groups_by_function_and_by_device(opened: Open) -> None:
    page = opened(worlds.towers())
    for by, expected in (("device", {"CPU:0", "GPU:0", "GPU:1"}), ("function", set())):
        page.run("byId('grouping').value = arguments[0]; byId('grouping').dispatchEvent(new Event('change'))", by)
        outermost = set(page.value("graph.tree.parts[0].map((item) => graph.tree.label[item])"))
        assert expected <= outermost
        assert page.value("[...graph.tree.order].sort((a, b) => a - b)") == list(range(15))


def test_colours_have_letters_for_each_reason_and_cost(opened: Open) -> None:
    page = opened(worlds.towers())
    page.run("byId('colouring').value = 'reason'; byId('colouring').dispatchEvent(new Event('change'))")
    assert [entry.text for entry in page.all("#legend > span")] == ["RQ requested 15"]
    page.run("byId('colouring').value = 'cost'; byId('colouring').dispatchEvent(new Event('change'))")
    assert len(page.all("#legend > span")) == 5
    assert "MatMul · " in page.value("document.querySelector('#graph').textContent")


def test_copies_are_ranked_by_decision_and_by_bytes(opened: Open) -> None:
    page = opened(worlds.towers())
    page.find("#tab-copies").click()
    causes = [summary.text.replace("\n", " ") for summary in page.all(".cause summary")]
    assert causes == [
        "512 B RQ 2 copies: It requested /gpu:0 and got GPU:0.",
        "512 B RQ 2 copies: It requested /gpu:1 and got GPU:1.",
        "unknown size RQ 2 copies: It requested /cpu:0 and got CPU:0.",
    ]
    rows = [row.text.replace("\n", " ") for row in page.all("#panel-copies tbody tr")]
    assert len(rows) == 6
    assert rows[0] == "C0 → G0 batch:0 float32 [8,8] 256 B start tower/dense_0/MatMul tower/dense_1/MatMul follow"
    page.find("#panel-copies tbody a.link").click()
    assert page.find("#details h2").text == "batch"


def test_decisions_alike_on_three_devices_are_one_entry_that_opens_to_each(opened: Open) -> None:
    readers = [node(f"x_{i}", "Neg", "a", device=f"/gpu:{i}") for i in range(4)]
    page = opened(worlds.result(place(constant("a", (4,), "/cpu:0"), *readers, gpus=4)))
    page.find("#tab-copies").click()
    (all_of_them,) = page.all(".cause summary")
    assert all_of_them.text.replace("\n", " ") == (
        "64 B RQ 4 copies, 1 for each of GPU:0 … GPU:3: It requested /gpu:0 and got GPU:0. And 3 alike."
    )
    all_of_them.click()
    each = [summary.text.replace("\n", " ") for summary in page.wait_for(".cause .cause summary")]
    assert each == [f"16 B RQ 1 copy: It requested /gpu:{i} and got GPU:{i}." for i in range(4)]


def test_the_schedule_is_the_simulated_one(opened: Open) -> None:
    world = worlds.towers()
    simulated = schedule_placement(world.programs[0].placement)
    page = opened(world)
    page.find("#tab-schedule").click()
    spans = page.value(
        "[...Array(schedule.spans.count).keys()].map((i) => schedule.spans.at(i)).map("
        "(span) => [state.program.schedule.tracks[span.track].name, span.start, span.duration])"
    )
    trace = simulated.trace
    assert sorted(map(tuple, spans)) == sorted(
        (trace.tracks[span.track].name, span.start, span.duration) for span in trace.spans if span.duration
    )
    canvas = page.find("#panel-schedule canvas")
    assert canvas.size["height"] > 40
    assert canvas.get_attribute("aria-label").startswith("Gantt chart. world: ")


def test_a_copy_that_shared_a_link_says_so(opened: Open) -> None:
    text = BOTH_FROM_HOST.replace("1000", "1000000")
    page = opened(worlds.result(run(text, switch("switch", 0, 1)).placement))
    page.find("#tab-schedule").click()
    panel = page.find("#panel-schedule")
    assert "switch (31.5 GB/s each way, shared by GPU:0, GPU:1): busy" in panel.text
    page.run("""
        const at = [...Array(schedule.spans.count).keys()].find((i) => schedule.spans.at(i).sharing);
        const {track, start, duration} = schedule.spans.at(at);
        const {from, to} = schedule.view;
        const box = schedule.canvas.getBoundingClientRect();
        const place = (start + duration / 2 - from) / (to - from);
        const x = schedule.names + place * (schedule.canvas.clientWidth - schedule.names - 8);
        const where = {clientX: box.left + x, clientY: box.top + AXIS + (track + 0.5) * TRACK, bubbles: true};
        schedule.canvas.dispatchEvent(new PointerEvent("pointermove", where));
    """)
    assert "on its own link: shares switch with copies of GPU:1" in page.find("#panel-schedule .tip").text


def test_a_difference_is_listed(opened: Open) -> None:
    page = opened(worlds.agreed(graphs.towers(2), moved="tower_1/dense_0/Relu"))
    assert page.find("header .verdict").text.startswith("DISAGREES with TensorFlow 2.21.0: 14/15 nodes the same")
    page.find("#tab-agreement").click()
    assert [row.text for row in page.all("#panel-agreement tbody tr")] == ["tower_1/dense_0/Relu Relu GPU:1 CPU:0"]


def test_a_refused_graph_says_why_and_has_no_schedule(opened: Open) -> None:
    refused = place(constant("c", (2,)), node("bad", "Relu", "c", device="/gpu:7"), soft=False)
    page = opened(worlds.result(refused))
    assert "TensorFlow does not place this graph (INVALID_ARGUMENT)." in page.find("#panel-summary").text
    page.find("[aria-label^='bad,']").click()
    assert "TensorFlow refuses the graph" in page.find("#reasons").text
    page.find("#tab-schedule").click()
    assert "cannot run, since TensorFlow refuses to place it" in page.find("#panel-schedule").text


def test_another_program_takes_the_place_of_the_first(opened: Open) -> None:
    page = opened(worlds.result(graphs.chain(3), graphs.towers(2)))
    assert page.value("state.program.count") == 15
    page.run("byId('program').value = '0'; byId('program').dispatchEvent(new Event('change'))")
    assert page.value("state.program.count") == 3
    assert [section.is_displayed() for section in page.all("#panel-summary .summary")] == [True, False]


def test_an_empty_graph_has_a_page(opened: Open) -> None:
    page = opened(worlds.result(graphs.empty()))
    assert page.find("#viewport").text == "This graph has no nodes."


def test_hostile_names_run_nothing_and_arrive_whole(opened: Open) -> None:
    result = worlds.hostile()
    names = result.programs[0].placement.graph.names[2:]
    page = opened(result)
    assert page.value("Array.from({length: state.program.count}, (_, i) => state.program.name(i))") == names
    for i in range(len(names)):
        page.run("go(arguments[0])", i)
    for by in ("function", "device", "scope"):
        page.run("byId('grouping').value = arguments[0]; byId('grouping').dispatchEvent(new Event('change'))", by)
    for tab in ("copies", "schedule", "agreement", "graph"):
        page.run("openTab(arguments[0])", tab)
    page.run("byId('search').value = 'script'; byId('search').dispatchEvent(new Event('input'))")
    assert page.value("typeof window.hacked") == "undefined"
    assert page.all("img, iframe, #graph script, #details script, #panel-summary script") == []


def test_a_flat_graph_of_thousands_shows_few_boxes_at_a_time(opened: Open) -> None:
    page = opened(worlds.result(graphs.chain(3000)))
    assert page.value("Math.max(...graph.tree.parts.map((parts) => parts.length)) <= FAN_OUT")
    assert page.value("[...graph.tree.order].sort((a, b) => a - b).every((node, i) => node === i)")
    assert len(labels(page)) < 100
    page.run("go(1234)")
    assert page.find("#graph .selected").get_attribute("aria-label").startswith("n1234,")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(opened: Open, scheme: str) -> None:
    page = opened(worlds.towers())
    emulate = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", emulate)
    try:
        pairs = page.value(_COLOURS)
    finally:
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    low = {f"{text} on {paper}" for text, paper in pairs if contrast_of(text, paper) < 4.5}
    assert low == set()


_COLOURS = """(() => {
  const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    pixel.clearRect(0, 0, 1, 1); pixel.fillStyle = colour; pixel.fillRect(0, 0, 1, 1);
    return [...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3).join(",");
  };
  const css = getComputedStyle(document.documentElement);
  const named = (name) => rgb(css.getPropertyValue(name));
  const plain = ["--ink", "--faint", "--accent", "--warning", "--good"].flatMap(
    (ink) => ["--paper", "--panel"].map((paper) => [named(ink), named(paper)]));
  const boxes = [...document.querySelectorAll("#graph .box")].flatMap((box) => {
    const [body, tag] = [".body", ".tag"].map((part) => box.querySelector(part));
    const under = rgb(getComputedStyle(body).fill);
    return [...box.querySelectorAll("text")].map((text) => [
      rgb(getComputedStyle(text).fill),
      text.matches(".letters") ? rgb(getComputedStyle(tag ?? box.querySelector(".bar")).fill) : under]);
  });
  return [...plain, ...boxes];
})()"""


def contrast_of(text: str, paper: str) -> float:
    from viz.palette import contrast

    one, other = ("#" + "".join(f"{int(part):02x}" for part in colour.split(",")) for colour in (text, paper))
    return contrast(one, other)
