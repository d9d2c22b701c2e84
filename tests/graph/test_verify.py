from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from simplace.graph.graph import Graph
from simplace.graph.graph_text import parse_graph
from simplace.graph.verify import verify_graph
from simplace.program.program import Program
from tests.lowering import worlds as lowering

OPS = {"Var": ((), (101,)), "Int": ((), (3,)), "Neg": ((1,), (1,)), "Set": ((101,), ())}
GRAPH = parse_graph("v = Var()\nn = Neg(v)\ni = Int()\ns = Set(v)", lambda op, attrs: OPS[op])


def test_sound_graph_passes() -> None:
    verify_graph(GRAPH)


def edited(**changes: tuple[int, Any]) -> Graph:
    columns = {}
    for column, (place, value) in changes.items():
        columns[column] = list(getattr(GRAPH, column))
        columns[column][place] = value
    return replace(GRAPH, **columns)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (replace(GRAPH, ops=GRAPH.ops[:-1]), "each column has one entry per node"),
        (replace(GRAPH, edge_src=GRAPH.edge_src[:-1]), "each column has one entry per edge"),
        (edited(names=(0, "first")), "node 0 is the source, node 1 the sink"),
        (edited(in_types=(1, (1,))), "source and sink carry no data"),
        (edited(names=(3, "v")), "node names are unique, but these are not: ['v']"),
        (edited(edge_dst=(0, 99)), "edge 0, 2:0 -> 99:0, joins nodes of the graph"),
        (edited(edge_src=(0, 1)), "edge 0, 1:0 -> 3:0, does not leave the sink"),
        (edited(edge_dst=(0, 0)), "edge 0, 2:0 -> 0:0, does not enter the source"),
        (edited(edge_src_slot=(0, -1)), "edge 0, 2:-1 -> 3:0, is a control edge at both ends or at none"),
        (edited(edge_src_slot=(0, 1)), "edge 0, 2:1 -> 3:0, leaves an output that v has"),
        (edited(edge_dst_slot=(0, 1)), "edge 0, 2:0 -> 3:1, enters an input that n has"),
        (edited(edge_src=(0, 4)), "edge 0, 4:0 -> 3:0, carries the type that n takes: 3, 1"),
        (edited(edge_src=(1, 3)), "edge 1, 3:0 -> 5:0, brings the reference that s takes"),
        (edited(edge_src=(1, 2), edge_dst=(1, 3)), "no edge is there twice"),
    ],
)
def test_broken_invariant_is_named(graph: Graph, message: str) -> None:
    with pytest.raises(AssertionError) as caught:
        verify_graph(graph)
    assert str(caught.value).splitlines()[0] == message


def test_input_without_an_edge_is_named() -> None:
    without = {name: getattr(GRAPH, name)[1:] for name in ("edge_src", "edge_src_slot", "edge_dst", "edge_dst_slot")}
    with pytest.raises(AssertionError) as caught:
        verify_graph(replace(GRAPH, **without))
    assert str(caught.value).splitlines()[0] == "n has one edge into each of its 1 inputs, not []"


INNER = lowering.function("inner(x: float) -> y: float", "n = Neg(x) @/device:CPU:0", {"y": "n:y:0"})
BRANCHES = (
    "{Tcond=bool, Tin=(float,), Tout=(float,), then_branch=fn('inner'), else_branch=fn('inner'), "
    "_lower_using_switch_merge=True}"
)
OUTER = lowering.function(
    "outer(p: bool, x: float) -> y: float",
    f"""
    once = PartitionedCall(x) {{Tin=(float,), Tout=(float,), f=fn('inner')}}
    twice = If(p, once:output:0) {BRANCHES}
    """,
    {"y": "twice:output:0"},
)


@pytest.mark.parametrize(
    "program",
    [lowering.call_program(OUTER, INNER), lowering.session_program("a = Const() {dtype=float}\nb = Neg(a)")],
    ids=["function", "session"],
)
def test_prepared_graph_passes(program: Program) -> None:
    verify_graph(lowering.prepared(program))
