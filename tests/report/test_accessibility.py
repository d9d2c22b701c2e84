"""What people who hear the page, use keys or see little contrast need: by the browser's own accessibility tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from simplace.placement.placement import Placement
from tests.report import worlds
from tests.report.conftest import Opened, Opener
from tests.report.test_following import not_granted, refused
from tests.views import graphs
from viz.palette import contrast

TABS = ("graph", "copies", "schedule", "agreement")
TAB = "\ue004"
# Roles that WAI-ARIA requires, or people need, to have a name.
NAMED = {
    "button", "link", "checkbox", "combobox", "searchbox", "textbox", "listbox", "option", "tab", "tabpanel", "tree",
    "treeitem", "image", "img", "group", "DisclosureTriangle", "MenuListPopup", "RootWebArea", "navigation",
    "complementary",
}  # fmt: skip
UNNAMED_GROUPS = {"group", "MenuListPopup"}  # a browser makes them of elements that need no name


def read_tree(page: Opened) -> list[tuple[str, str]]:
    """Return role and name of what a screen reader is told of."""
    nodes = page.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    return [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node.get("ignored", False)
    ]


@pytest.fixture(params=[lambda: graphs.training_step(30), refused])
def page(request: pytest.FixtureRequest, opened: Opener) -> Opened:
    world: Callable[[], Placement] = request.param
    return opened(worlds.result(world()))


def test_all_that_can_be_used_has_a_name(page: Opened) -> None:
    for tab in TABS:
        page.run("openTab(arguments[0]); if (arguments[0] === 'graph') go(0)", tab)
        found = read_tree(page)
        assert {role for role, _ in found} >= {"RootWebArea", "banner", "main", "tab"}
        assert [role for role, name in found if role in NAMED - UNNAMED_GROUPS and not name.strip()] == [], tab


STRUCTURE = """(() => {
  const shown = (one) => one.checkVisibility();
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  const references = ["aria-controls", "aria-labelledby", "aria-describedby", "aria-activedescendant", "for"];
  const named = (name) => [...document.querySelectorAll(`[${name}]`)].map((one) => one.getAttribute(name));
  const refers = references.flatMap(named).flatMap((ids) => ids.split(" "));
  const levels = [...document.querySelectorAll("h1,h2,h3,h4")].filter(shown).map((one) => Number(one.tagName[1]));
  return {
    doubled: ids.filter((id, i) => ids.indexOf(id) !== i),
    dangling: refers.filter((id) => !ids.includes(id)),
    skipped: levels.filter((level, i) => level > (levels[i - 1] ?? 0) + 1),
    mains: document.querySelectorAll("main").length,
    heads: [...document.querySelectorAll("th:not([scope])")].length,
    outsideTree: [...document.querySelectorAll("[role=treeitem]")].filter((one) => !one.closest("[role=tree]")).length,
    outsideList: [...document.querySelectorAll("[role=option]")].filter((one) => !one.closest("[role=listbox]")).length,
    language: document.documentElement.lang,
  };
})()"""


def test_roles_ids_and_headings_fit_together(page: Opened) -> None:
    page.run("doInSteps(search.seek('a')); go(0)")
    for tab in TABS:
        page.run("openTab(arguments[0])", tab)
        assert page.value(STRUCTURE) == {
            "doubled": [], "dangling": [], "skipped": [], "mains": 1, "heads": 0, "outsideTree": 0, "outsideList": 0,
            "language": "en",
        }, tab  # fmt: skip


FOCUSED = """(() => {
  const one = document.activeElement;
  const style = getComputedStyle(one);
  const box = one.getBoundingClientRect();
  const body = getComputedStyle(one.querySelector(".body") ?? one);
  return {
    name: one.id || one.getAttribute("aria-label") || one.textContent.trim().slice(0, 40) || one.tagName,
    isMarked: style.outlineStyle !== "none" || style.boxShadow !== "none" || parseFloat(body.strokeWidth) >= 2,
    isOnScreen: box.width > 0 && box.right > 0 && box.left < innerWidth,
    isEnd: one === document.body,
  };
})()"""


def test_the_tab_key_walks_through_what_can_be_used_and_shows_where_it_is(opened: Opener) -> None:
    page = opened(worlds.towers())
    page.run("document.activeElement.blur()")
    seen: list[dict[str, Any]] = []
    for _ in range(60):
        page.press(TAB)
        at = page.value(FOCUSED)
        if at["isEnd"]:
            break
        seen.append(at)
    names = [one["name"] for one in seen]
    expected = ["Skip to the graph", "program", "theme", "tab-graph", "search", "grouping", "colouring", "control",
                "zoom-in", "zoom-out", "zoom-fit", "collapse"]  # fmt: skip
    assert [name for name in names if name in expected] == expected
    assert [one["name"] for one in seen if not (one["isMarked"] and one["isOnScreen"])] == []
    assert len(names) == len(seen) < 60


# Every text that is shown as HTML, with what is behind it; large ones may have less contrast.
CONTRASTS = """(() => {
  const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    pixel.clearRect(0, 0, 1, 1); pixel.fillStyle = colour; pixel.fillRect(0, 0, 1, 1);
    return [...pixel.getImageData(0, 0, 1, 1).data];
  };
  const hex = (colour) => "#" + colour.slice(0, 3).map((part) => part.toString(16).padStart(2, "0")).join("");
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return rgba(getComputedStyle(document.documentElement).getPropertyValue("--paper"));
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = new Map();
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const one = text.parentElement;
    const isText = text.textContent.trim() && !one.closest("svg, script, option, noscript");
    if (!isText || !one.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(one);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.6 && Number(style.fontWeight) >= 700);
    const pair = [hex(rgba(style.color)), hex(behind(one)), isLarge];
    found.set(pair.join(), [...pair, text.textContent.trim().slice(0, 30)]);
  }
  return [...found.values()];
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("world", [lambda: (not_granted(), graphs.towers(2)), lambda: (refused(),)])
def test_texts_have_contrast_in_every_tab(
    opened: Opener, world: Callable[[], tuple[Placement, ...]], scheme: str
) -> None:
    page = opened(worlds.result(*world()))
    page.browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    try:
        pairs = []
        for tab in TABS:
            page.run("openTab(arguments[0])", tab)
            page.run("if (arguments[0] === 'graph') { doInSteps(search.seek('a')); go(1); }", tab)
            pairs += page.value(CONTRASTS)
    finally:
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert len(pairs) > 10
    low = {
        (ink, paper, words) for ink, paper, is_large, words in pairs if contrast(ink, paper) < (3 if is_large else 4.5)
    }
    assert low == set()
