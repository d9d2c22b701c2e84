"""The page as text: what is embedded, what is escaped, what the policy allows."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from simplace.analysis.schedule import schedule_placement
from simplace.cli import main
from simplace.partition import control_loops
from simplace.report.graph_data import graph_data
from simplace.report.page import write_page
from simplace.report.schedule_data import schedule_data
from tests.report import worlds
from tests.views import graphs
from tests.worlds import constant, node, place

ROOT = Path(__file__).resolve().parents[2]


def embedded(text: str, name: str) -> dict[str, object]:
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', text, re.DOTALL)
    assert found, f"the page embeds {name}"
    return dict(json.loads(found[1]))


class Tags(HTMLParser):
    """List the tags of a page with their attributes, as a browser's parser would find them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_columns_hold_every_node_edge_and_copy() -> None:
    placement = graphs.towers(2)
    placed = worlds.result(placement).programs[0]
    data = graph_data(placed, [device.name for device in placement.devices])
    texts, nodes = data["texts"], data["nodes"]
    names = [texts[scope] + texts[leaf] for scope, leaf in zip(nodes["scope"], nodes["leaf"], strict=True)]
    assert names == placement.graph.names[2:]
    assert {len(column) for column in nodes.values()} == {15}
    edges = data["edges"]
    assert {(names[s], names[d]) for s, d in zip(edges["src"], edges["dst"], strict=True)} >= {("batch", "start")}
    copies = data["copies"]
    assert [names[i] for i in copies["producer"]] == [placement.graph.names[c.producer] for c in placed.copies]
    assert sorted(i for numbers in data["causes"]["copies"] for i in numbers) == list(range(len(placed.copies)))


def test_spans_unfold_to_those_of_the_trace() -> None:
    simulated = schedule_placement(graphs.towers(2))
    data = schedule_data(simulated)
    starts, at = [], 0
    for track, count in zip(data["tracks"], data["counts"], strict=True):
        before = 0
        for i in range(at, at + count):
            starts.append((track["name"], before + data["gap"][i], data["duration"][i]))
            before += data["gap"][i] + data["duration"][i]
        at += count
    trace = simulated.trace
    assert sorted(starts) == sorted(
        (trace.tracks[s.track].name, s.start, s.duration) for s in trace.spans if s.duration
    )


def test_gpus_that_a_function_uses_are_not_idle_though_no_eager_op_runs_there() -> None:
    page = write_page(worlds.with_eager(worlds.result(graphs.towers(2))), None)
    assert "Outside of functions" in page
    assert "idle device" not in page


def test_a_refused_graph_has_nodes_and_no_table_of_devices() -> None:
    refused = place(constant("c", (2,)), node("bad", "Relu", "c", device="/gpu:7"), soft=False)
    page = write_page(worlds.result(refused))
    assert "world · refused</option>" in page
    assert "<p>world: graph, 2 nodes, none placed, soft placement off</p>" in page
    assert "output bytes" not in page.partition("<script")[0]


def test_nothing_of_a_program_becomes_markup() -> None:
    plain, hostile = Tags(), Tags()
    plain.feed(write_page(worlds.result(graphs.chain(len(worlds.HOSTILE)))))
    hostile.feed(write_page(worlds.hostile()))
    for tags in (plain, hostile):
        tags.close()
    scripts = [[attrs for tag, attrs in tags.found if tag == "script"] for tags in (plain, hostile)]
    assert scripts[0] == scripts[1]
    assert {tag for tag, _ in hostile.found} <= {tag for tag, _ in plain.found} | {"ul", "li", "b", "a"}
    assert not [name for _, attrs in hostile.found for name in attrs if name.startswith("on")]


def test_the_policy_allows_its_own_scripts_and_no_connection() -> None:
    text = write_page(worlds.towers())
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert found
    rules = dict(rule.strip().split(" ", 1) for rule in found[1].split(";"))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in found[1]
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", text)


def test_the_same_result_gives_the_same_bytes() -> None:
    assert write_page(worlds.towers()) == write_page(worlds.towers())


def test_a_page_without_a_schedule_says_so() -> None:
    data = embedded(write_page(worlds.towers(), simulation=None), "program-0")
    assert data["schedule"] == {"missing": "The schedule was left out of this page."}


def test_stages_are_told_as_they_begin() -> None:
    said: list[str] = []
    write_page(worlds.towers(), stage=said.append)
    assert said == ["writing down world", "simulating a step of world", "writing the page"]


def test_stages_of_several_programs_are_counted() -> None:
    said: list[str] = []
    result = worlds.towers()
    write_page(replace(result, programs=result.programs * 2), simulation=None, stage=said.append)
    assert said[::2] == ["writing down world (1 of 2)", "writing down world (2 of 2)", "writing the page"]


def test_the_vendored_library_has_its_licence_beside_it() -> None:
    folder = ROOT / "simplace/report/assets/vendor"
    assert {file.name for file in folder.iterdir()} == {"dagre.min.js", "dagre.LICENSE"}
    assert "Permission is hereby granted, free of charge" in (folder / "dagre.LICENSE").read_text()


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    file = tmp_path / "graph.pbtxt"
    file.write_text("\n".join([constant("a", (2, 3), device="/cpu:0"), node("x", "Neg", "a", device="/gpu:0")]))
    return file


def test_the_command_writes_a_page(graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.html"
    assert main(["report", str(graph), "--devices", "cpu:1,gpu:1", "-o", str(target)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("not checked against TensorFlow")
    assert err.startswith(f"wrote {target}: 0.")
    assert target.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("name", "words", "line"),
    [
        ("page.pdf", [], "a page's name ends in .html"),
        ("none/page.html", [], "there is no directory"),
        ("page.html", ["--gpu", "z9"], "z9"),
    ],
)
def test_what_cannot_be_done_is_refused_first(
    graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, words: list[str], line: str
) -> None:
    assert main(["report", str(graph), "-o", str(tmp_path / name), *words]) == 2
    assert not (tmp_path / name).exists()
    err = capsys.readouterr().err
    assert line in err
    assert err.count("\n") == 1


def test_a_graph_is_rewritten_for_its_partition_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rewritten, may_apply = [], control_loops.may_apply
    monkeypatch.setattr(control_loops, "may_apply", lambda placed: rewritten.append(placed) or may_apply(placed))
    write_page(worlds.towers())
    assert len(rewritten) == 1
