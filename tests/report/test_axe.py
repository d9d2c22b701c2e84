"""axe-core finds nothing in the page: not in its tabs, not opened, refused, searched, dark, nor as wide as a phone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import pytest

from simplace.result import Result
from tests.report import worlds
from tests.report.conftest import REQUIRED, Opened, Opener
from tests.report.test_eager_page import eager_only
from tests.report.test_following import compiled, not_granted, refused
from tests.views import graphs

TABS = [f"openTab('{name}')" for name in ("summary", "copies", "schedule", "agreement")]
SEARCH = "byId('search').value = arguments[0]; byId('search').dispatchEvent(new Event('input'))"
OPENED = "graph.toggle(graph.visibleItems.find((item) => graph.tree.isScope(item) && !graph.open.has(item)))"
INSIDE = "graph.enter(graph.visibleItems.find((item) => graph.tree.isScope(item)))"
RUN = """
  const done = arguments[0];
  const options = { resultTypes: ["violations", "incomplete"], rules: { "target-size": { enabled: true } } };
  axe.run(document, options).then(done, (error) => done({ error: String(error) }));
"""
# What axe cannot decide, and other tests do: contrast of texts in a drawing or below the list of matches, and a link to
# a graph that is behind another tab until the link is pressed.
UNDECIDED = {"color-contrast", "skip-link"}


@pytest.fixture(scope="session")
def axe() -> str:
    """Return axe-core's script."""
    try:
        return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    except ModuleNotFoundError:
        reason = "axe-core is not run: pip install --no-deps axe-playwright-python brings it (160 kB)"
        if os.environ.get(REQUIRED) == "1":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(params=["light, 1400 wide", "dark, 390 wide"])
def screen(axe: str, browser: Any, request: pytest.FixtureRequest) -> Iterator[None]:
    """Show pages in light on a desk, then in dark on a phone."""
    scheme, _, width = request.param.removesuffix(" wide").partition(", ")
    _show_as(browser, scheme, int(width))
    yield
    _show_as(browser, "", 1400)


def _show_as(browser: Any, scheme: str, width: int) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}] if scheme else []
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def find(page: Opened) -> list[tuple[str, str]]:
    """Return what axe finds: the rule and the element."""
    found = page.browser.execute_async_script(RUN)
    assert "error" not in found, found
    undecided = [one for one in found["incomplete"] if one["id"] not in UNDECIDED]
    return [(rule["id"], node["html"][:200]) for rule in (*found["violations"], *undecided) for node in rule["nodes"]]


WORLDS: dict[str, tuple[Callable[[], Result], list[str]]] = {
    "step": (
        lambda: worlds.result(graphs.training_step(30)),
        ["", OPENED, INSIDE, "graph.leave(); go(3)", "followCopies([0])", *TABS],
    ),
    "refused": (lambda: worlds.result(refused()), ["", "go(1)"]),
    "moved": (lambda: worlds.agreed(graphs.towers(2), moved="start"), ["openTab('agreement')"]),
    "eager": (eager_only, ["", TABS[0], TABS[-1]]),
    "two": (lambda: worlds.result(not_granted(), compiled()), ["", "showProgram(1)", "go(1)"]),
}


@pytest.mark.usefixtures("screen")
@pytest.mark.parametrize("name", WORLDS)
def test_axe_has_no_finding(opened: Opener, axe: str, name: str) -> None:
    world, acts = WORLDS[name]
    page = opened(world())
    page.run(axe)
    for act in acts:
        page.run(act)
        page.wait_until_idle()
        assert find(page) == [], act


def test_axe_has_no_finding_in_a_list_of_matches(opened: Opener, axe: str) -> None:
    page = opened(worlds.towers())
    page.run(axe)
    for words in ("dense", "nothing like it"):
        page.run(SEARCH, words)
        assert find(page) == [], words


def test_axe_finds_what_is_wrong(opened: Opener, axe: str) -> None:
    page = opened(worlds.towers())
    page.run(axe)
    page.run("byId('theme').textContent = ''; byId('theme').removeAttribute('title'); document.title = ''")
    assert sorted({rule for rule, _ in find(page)}) == ["button-name", "document-title"]
