"""The page of a large graph: what is made, parsed and laid out, and in how short steps; counted, not timed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from simplace.report.page import write_page
from tests.report import worlds
from tests.report.conftest import Opened, Opener
from tests.views import graphs
from tests.worlds import constant, node, place

COUNT = 20_000
STEP = 10_000  # nodes that are looked at in one step
ESCAPE = "\ue00c"
ENTER = "\ue007"
# Counts the work of each step: columns parsed, paths of nodes looked up, siblings looked at, scopes arranged,
# edges that leave a part of a scope; texts, nodes and events looked at.
COUNTED = """
  window.steps = [];
  const next = () => steps.push({ parsed: 0, paths: 0, siblings: 0, arranged: 0, edges: 0, looked: 0 });
  next();
  const [post, parse, idle] = [MessagePort.prototype.postMessage, JSON.parse, window.requestIdleCallback];
  MessagePort.prototype.postMessage = function (...rest) { next(); return post.apply(this, rest); };
  window.requestIdleCallback = (act) => idle(() => { next(); act(); });
  JSON.parse = (text) => { steps.at(-1).parsed += Number(text.length > 10_000); return parse(text); };
  window.countMore = () => {
    const scope = PATHS.scope;
    PATHS.scope = (program) => {
      const { keyOf, stepsOf } = scope(program);
      return { keyOf: (node) => { steps.at(-1).paths += 1; return keyOf(node); }, stepsOf };
    };
    const [listed, looked] = [nodeEntry, nodesOf];
    nodeEntry = (...rest) => { steps.at(-1).siblings += 1; return listed(...rest); };
    nodesOf = (...rest) => { steps.at(-1).siblings += 1; return looked(...rest); };
    const looking = lookAtEach;
    lookAtEach = (limit, look) => looking(limit, (i) => { steps.at(-1).looked += 1; look(i); });
    const before = arrange;
    arrange = (...rest) => { steps.at(-1).arranged += 1; return before(...rest); };
    const { isControl } = Program.prototype;
    Program.prototype.isControl = function (edge) { steps.at(-1).edges += 1; return isControl.call(this, edge); };
  };
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page of a chain without scopes."""
    path = tmp_path_factory.mktemp("large") / "report.html"
    path.write_text(write_page(worlds.result(graphs.chain(COUNT))), encoding="utf-8", newline="\n")
    return path


@pytest.fixture(scope="module")
def to_and_fro(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page of a chain that goes from one of two scopes to the other with each node."""
    names = [f"{'ab'[i % 2]}/n{i}" for i in range(12_000)]
    lines = [node(new, "Relu", old) for old, new in pairwise(names)]
    path = tmp_path_factory.mktemp("large") / "report.html"
    placement = place(constant(names[0], (4,)), *lines)
    path.write_text(write_page(worlds.result(placement), None), encoding="utf-8", newline="\n")
    return path


@pytest.fixture(scope="module")
def scopes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the page of a chain through twelve scopes of a thousand nodes."""
    names = [f"block_{i // 1000}/layer_{i // 250}/n{i}" for i in range(12_000)]
    lines = [node(new, "Relu", old) for old, new in pairwise(names)]
    path = tmp_path_factory.mktemp("large") / "report.html"
    path.write_text(write_page(worlds.result(place(constant(names[0], (4,)), *lines)), None), "utf-8", newline="\n")
    return path


@pytest.fixture
def counted(browser: Any) -> Iterator[None]:
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": COUNTED})
    yield
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def count(page: Opened, kind: str) -> list[int]:
    """Return how much of a kind of work each step did since the last call."""
    found = page.value("steps.map((step) => step[arguments[0]])", kind)
    page.run("steps.splice(0, steps.length - 1)")
    return list(found)


def test_it_is_made_as_far_as_it_is_looked_at(opened: Opener, file: Path) -> None:
    page = opened.open_file(file)
    made = page.value("graph.tree.parent.length")
    assert made < 40
    page.run("graph.toggle(graph.visibleItems.find((item) => graph.tree.isScope(item) && !graph.open.has(item)))")
    assert page.value("graph.tree.parent.length") < made + 20
    page.run("go(12345)")
    page.wait_until_idle()
    assert page.value("graph.tree.parent.length") < made + 120
    assert len(page.all("#graph .box")) < 120
    page.find("#search").send_keys("n1")
    page.wait_until_idle()
    assert page.value("search.all.length") == 11_111
    assert len(page.all("#found [role=option]")) == 50
    page.press(ESCAPE)


@pytest.mark.usefixtures("counted")
def test_no_step_does_much(opened: Opener, file: Path) -> None:
    page = opened.open_file(file)
    parsed = count(page, "parsed")
    assert (sum(parsed) > 8, max(parsed)) == (True, 1)
    page.run("countMore(); choose('grouping', 'scope'); showGraph()")
    page.wait_until_idle()
    paths, siblings = page.value("[steps.map((step) => step.paths), steps.map((step) => step.siblings)]")
    assert (sum(paths), max(paths)) == (COUNT, 10_000)
    assert (sum(siblings) > 2 * COUNT, max(siblings) <= 10_100) == (True, True)
    count(page, "siblings")
    page.run("go(12345)")
    page.wait_until_idle()
    arranged = count(page, "arranged")
    around = page.value("graph.tree.path(graph.tree.itemOf[12345]).length")
    assert (sum(arranged) >= around - 1, max(arranged)) == (True, 1)
    assert page.find("#details h2").text == "n12345"


@pytest.mark.usefixtures("counted")
def test_a_large_scope_opens_in_steps(opened: Opener, to_and_fro: Path) -> None:
    page = opened.open_file(to_and_fro)
    page.run("countMore(); choose('grouping', 'scope'); showGraph()")
    page.wait_until_idle()
    count(page, "edges")
    opening = "graph.toggle(graph.tree.partsOf(0).find((item) => !graph.open.has(item)))"
    entering = "graph.enter(graph.tree.partsOf(0)[0])"
    for act in (opening, "byId('control').click()", entering):
        page.run(act)
        page.wait_until_idle()
        assert page.value("Math.max(...steps.map((step) => step.arranged))") == 1, act
    page.run("address.written = ''; address.restore()")  # as a link does
    page.wait_until_idle()
    edges = page.value("steps.map((step) => step.edges)")
    assert max(edges) <= 2 * STEP
    assert page.value("graph.tree.label[graph.root]") == "a"
    assert sum(edges) > 3 * STEP
    page.run("graph.toggle(graph.visibleItems.find((item) => graph.tree.isScope(item))); showGraph(); graph.toggle(1)")
    page.wait_until_idle()


@pytest.mark.usefixtures("counted")
def test_the_first_scopes_open_in_steps(opened: Opener, scopes: Path) -> None:
    page = opened.open_file(scopes)
    page.run("countMore(); choose('grouping', 'scope'); showGraph()")
    page.wait_until_idle()
    page.run("graph.layout.clear(); byId('collapse').click()")
    page.wait_until_idle()
    arranged = count(page, "arranged")
    assert (sum(arranged) > 10, max(arranged)) == (True, 1)


@pytest.mark.usefixtures("counted")
def test_a_search_and_the_schedule_look_at_few_in_a_step(opened: Opener, file: Path) -> None:
    page = opened.open_file(file)
    page.run("countMore()")
    page.find("#search").send_keys("n")
    page.wait_until_idle()
    assert page.value("search.all.length") == COUNT
    looked = count(page, "looked")
    assert (sum(looked) > 4 * COUNT, max(looked) <= STEP) == (True, True)
    page.run("openTab('schedule')")
    page.wait_until_idle()
    looked = count(page, "looked")
    assert (sum(looked) >= 2 * COUNT, max(looked) <= 2 * STEP) == (True, True)
    assert page.find("#panel-schedule h2").text == "Simulated schedule"


def test_the_last_search_and_its_keys_count(opened: Opener, file: Path) -> None:
    page = opened.open_file(file)
    page.find("#search").send_keys("n1", "2345", ENTER)
    page.wait_until_idle()
    assert page.value("search.all.map((node) => state.program.name(node))") == ["n12345"]
    assert page.find("#details h2").text == "n12345"


def test_what_is_followed_comes_in_the_place_of_a_search_at_work(opened: Opener, file: Path) -> None:
    page = opened.open_file(file)
    page.run("byId('search').value = 'n'; byId('search').dispatchEvent(new Event('input')); follow([7], 'seven')")
    page.wait_until_idle()
    assert page.value("[search.all, byId('search').value]") == [[7], ""]
    assert page.find("#found").get_attribute("hidden") == "true"


@pytest.mark.usefixtures("counted")
def test_going_back_groups_no_node_anew(opened: Opener, to_and_fro: Path) -> None:
    page = opened.open_file(to_and_fro)
    page.run("countMore(); choose('grouping', 'scope'); showGraph(() => address.keep())")
    page.wait_until_idle()
    before = page.value("address.written")
    page.run("graph.enter(graph.tree.partsOf(0)[0])")
    page.wait_until_idle()
    count(page, "paths")
    page.run("history.replaceState(null, '', `#${arguments[0]}`); address.restore()", before)  # as Back does
    page.wait_until_idle()
    assert page.value("graph.root") == 0
    assert sum(count(page, "paths")) == 0


def test_what_is_asked_while_it_is_worked_on_comes_after(opened: Opener, file: Path) -> None:
    page = opened.open_file(file)
    assert page.run("choose('grouping', 'scope'); showGraph(); go(5); go(12345); return byId('panel-graph').inert")
    page.wait_until_idle()
    assert not page.value("byId('panel-graph').inert")
    assert page.value("graph.selected") == 12345
    assert page.find("#graph .selected").get_attribute("aria-label").startswith("n12345,")
