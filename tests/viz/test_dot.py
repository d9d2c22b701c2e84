from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pygraphviz
import pytest
from device_figures import FIGURES, device, every_mark

from viz import STYLES, Edge, Figure, Node, to_dot
from viz.layout import lay_out
from viz.legend import legend
from viz.packing.measured_parts import measure_parts
from viz.style import Style


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_dot_is_the_golden_text(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.dot", to_dot(FIGURES[name]()))


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_same_figure_gives_same_dot(name: str) -> None:
    assert to_dot(FIGURES[name]()) == to_dot(FIGURES[name]())


def test_legend_explains_exactly_the_marks_used() -> None:
    figure = Figure(nodes=(Node("a", "a"), Node("b", "b", kind="variable")), edges=(Edge("b", "a"),))
    assert [sample.meaning for sample in legend(figure)] == ["op", "variable", "data"]


def test_legend_of_every_mark_names_them_in_order() -> None:
    assert [sample.meaning for sample in legend(every_mark())] == [
        "op on CPU",
        "op on GPU",
        "op",
        "scope (number of ops)",
        "argument",
        "result",
        "variable",
        "copied tensor",
        "requested another device",
        "in host memory",
        "data",
        "control dependency",
        "copy to another device",
        "thicker: more tensors",
    ]


def test_a_legend_says_thicker_only_where_lines_differ_to_the_eye() -> None:
    def told(*edges: Edge) -> list[tuple[str, float]]:
        samples = legend(Figure(nodes=(Node("a", "a"), Node("b", "b")), edges=edges))
        return [(sample.meaning, sample.width) for sample in samples if sample.edge]

    thin, thick = Edge("a", "b", "copy", share=0.1), Edge("a", "b", "copy", share=0.6)
    assert told(thin, replace(thin, share=0.15)) == [("copy to another device", 1.92)]
    assert told(thin, thick) == [("copy to another device (thicker: more bytes)", 4.08)]
    assert told(Edge("a", "b"), Edge("a", "b", count=3)) == [("data", 0.9)]
    assert told(Edge("a", "b"), Edge("a", "b", count=8)) == [("data", 0.9), ("thicker: more tensors", 1.8)]


def test_a_brief_legend_has_the_same_marks_in_fewer_words() -> None:
    nodes = (Node("a", "a", kind="part"), Node("b", "b", kind="collective"))
    figure = Figure(nodes=nodes, edges=(Edge("a", "b", "copy"), Edge("a", "b", "collective"), Edge("a", "b", "data")))
    pairs = zip(legend(figure), legend(figure, is_brief=True), strict=True)
    assert [(whole.meaning, brief.meaning) for whole, brief in pairs] == [
        ("part of the program (number of ops)", "part"),
        ("collective", "collective"),
        ("data", "data"),
        ("copy to another device", "copy"),
        ("takes part in a collective", "in a collective"),
    ]


def test_a_slide_has_names_without_numbers_of_ops_and_variables_as_high_as_boxes() -> None:
    figure = Figure(nodes=tuple(Node(kind, kind, kind=kind, count=7) for kind in ("part", "scope", "variable")))
    slide = measure_parts(replace(figure, arrangement="rows"), STYLES["slide"], 60).parts.devices[0].nodes
    screen = measure_parts(replace(figure, arrangement="rows"), STYLES["screen"], 60).parts.devices[0].nodes
    assert slide["variable"][1] == slide["part"][1] < screen["variable"][1]
    assert "(7)" in to_dot(figure, STYLES["screen"])
    assert "(7)" not in to_dot(figure, STYLES["slide"])


@pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)
def test_what_is_on_no_device_is_said_in_the_ink_of_the_style(style: Style) -> None:
    figure = Figure(nodes=(Node("a", "a"),), arrangement="rows")
    (said,) = re.findall(r"<font[^>]*>on no device</font>", lay_out(figure, style, 60))
    assert style.faint_ink in said


def test_no_legend_when_off_or_nothing_to_explain() -> None:
    assert "legend" not in to_dot(replace(every_mark(), legend=False))
    assert "legend" not in to_dot(Figure("empty", groups=(device("GPU", 0),)))


def test_device_without_nodes_is_drawn() -> None:
    assert "empty GPU:0" in to_dot(Figure(groups=(device("GPU", 0),)))


def test_direction_follows_shape_unless_given() -> None:
    assert "rankdir=LR" in to_dot(FIGURES["eight_gpus"]())
    assert "rankdir=TB" in to_dot(FIGURES["towers"]())
    assert "rankdir=LR" in to_dot(replace(FIGURES["towers"](), direction="right"))


def test_groups_of_one_frame_are_in_one_box() -> None:
    drawing = pygraphviz.AGraph(to_dot(FIGURES["two_tasks"]()))
    frames = {graph.graph_attr["label"]: graph for graph in drawing.subgraphs() if "frame" in graph.name}
    inside = {
        title: {name for name in ("a/op", "b/op", "c/op", "d/op") if graph.has_node(name)}
        for title, graph in ((re.sub("<[^>]*>", "", label), graph) for label, graph in frames.items())
    }
    assert inside == {"task 0": {"a/op", "c/op"}, "task 1": {"b/op"}}
