"""A program whose names are markup, scripts, odd characters and far too long: every output is whole, none runs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from simplace.api import Diff
from simplace.changes.what_if import read_pin, suppose_changes
from simplace.checks.verdicts import DIFFERS
from simplace.compare.compare_placements import compare_placement
from simplace.program.observation import LoggedNode
from simplace.result import Placed, Result
from tests.exports import every_output, readers
from tests.exports.hostile import NAMES
from tests.report import worlds
from tests.worlds import GPU1
from viz.names import visible

ALL = (*worlds.HOSTILE, *(name for name in NAMES if not name.startswith("control")))  # it has \x01 in others already
SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {"svg", "g", "title", "desc", "polygon", "polyline", "path", "ellipse", "text", "metadata"}
SHOWN = (".svg", ".html", ".xml", ".json", ".txt")  # what a browser shows when it opens the file


def outputs(names: tuple[str, ...]) -> dict[str, bytes]:
    """Make all outputs of a chain of such nodes, all of them said to be elsewhere, compared with all of them moved."""
    (one,) = worlds.hostile(names).programs
    log = [LoggedNode(node.name, node.op, GPU1) for node in one.placement.nodes]
    result: Result = replace(
        worlds.hostile(names), programs=(Placed(one.placement, compare_placement(one.placement, log)),)
    )
    return every_output.outputs(result, Diff(result, suppose_changes(result, [read_pin("*=GPU:1")])))


@pytest.fixture(scope="module")
def hostile() -> dict[str, bytes]:
    return outputs(ALL)


@pytest.fixture(scope="module")
def plain() -> dict[str, bytes]:
    return outputs(tuple(f"n{i}" for i in range(len(ALL))))


def test_data_holds_every_name_as_it_is(hostile: Mapping[str, bytes]) -> None:
    read: dict[str, Any] = {name: readers.read(name, data) for name, data in hostile.items()}
    held = {
        "show.json": [node["name"] for node in read["show.json"]["programs"][0]["nodes"]],
        "diff.json": [move["name"] for move in read["diff.json"]["programs"][0]["moves"]],
        "trace.json": {event["name"] for event in read["tensorflow.trace.json"]["traceEvents"]} & set(ALL),
        "schedule.json": {span["node"] for span in read["tensorflow.schedule.json"]["spans"]} & set(ALL),
        "export.pb": [node.name for node in read["export.pb"].nodes],
        "export.pbtxt": [node.name for node in read["export.pbtxt"].nodes],
        "check.sarif": [
            one.locations[0].logical_locations[0].name
            for one in read["check.sarif"].runs[0].results
            if one.rule_id == DIFFERS.id
        ],
    }
    assert {name: sorted(names) for name, names in held.items()} == {name: sorted(ALL) for name in held}


def test_a_drawing_holds_every_name_where_it_can_be_seen(hostile: Mapping[str, bytes]) -> None:
    root = readers.read(".svg", hostile["tensorflow.timeline.svg"])
    titles = "\n".join(title.text or "" for title in root.iter(f"{SVG}title"))
    assert [name for name in ALL if f"{visible(name)} (" not in titles] == []


def test_no_page_or_drawing_has_markup_of_a_program(hostile: Mapping[str, bytes], plain: Mapping[str, bytes]) -> None:
    for name in (name for name in hostile if name.endswith(".html")):
        ours, theirs = readers.read(name, plain[name]).found, readers.read(name, hostile[name]).found
        assert [tag for tag, _ in theirs if tag == "script"] == [tag for tag, _ in ours if tag == "script"]
        assert {tag for tag, _ in theirs} <= {tag for tag, _ in ours} | {"ul", "li", "b", "a", "wbr"}
        assert not [key for _, attributes in theirs for key in attributes if key.startswith("on")]
    for name in (name for name in hostile if name.endswith(".svg")):
        elements = list(readers.read(name, hostile[name]).iter())
        assert {element.tag.removeprefix(SVG) for element in elements} <= DRAWN
        assert not [key for element in elements for key in element.attrib if key.startswith("on") or "href" in key]


def test_no_name_sets_anything_in_dot(hostile: Mapping[str, bytes], plain: Mapping[str, bytes]) -> None:
    for name in (name for name in hostile if name.endswith(".dot")):
        ours, theirs = readers.read(name, plain[name]), readers.read(name, hostile[name])
        assert set(map(str, theirs.nodes())).isdisjoint(ALL), "a node is called by a number"
        keys = [{key for node in graph.nodes() for key in node.attr} for graph in (ours, theirs)]
        assert keys[1] <= keys[0]


def test_nothing_of_a_program_runs_in_a_browser(hostile: Mapping[str, bytes], browser: Any, tmp_path: Path) -> None:
    browser.get_log("browser")
    for name in (name for name in hostile if name.endswith(SHOWN)):
        (tmp_path / name).write_bytes(hostile[name])
        browser.get((tmp_path / name).as_uri())
        assert browser.execute_script("return typeof window.hacked") == "undefined", name
        assert browser.execute_script("return document.querySelectorAll('img, iframe, object, embed').length") == 0
        assert [entry["message"] for entry in browser.get_log("browser")] == [], name


@pytest.mark.parametrize("page", ["<p>{}</p>", "<svg xmlns='http://www.w3.org/2000/svg'>{}</svg>"])
def test_the_browser_would_run_what_is_not_escaped(page: str, browser: Any, tmp_path: Path) -> None:
    file = tmp_path / ("page.svg" if page.startswith("<svg") else "page.html")
    file.write_text(page.format(worlds.HOSTILE[0]))
    browser.get(file.as_uri())
    assert browser.execute_script("return window.hacked") == 1
