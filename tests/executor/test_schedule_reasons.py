"""A schedule tells why its nodes are where they are, though the partition renumbered the graph before the run."""

from __future__ import annotations

from simplace.analysis.schedule import schedule_placement
from simplace.explain.explanation import explain_node
from simplace.report.schedule_data import schedule_data
from tests.partition.test_constants import C0, C1, placed
from tests.worlds import constant, node

WORLD = placed(
    constant("x", (16,), C0),
    node("A", "Neg", "x", device=C0),
    node("B", "Neg", "x", device=C1),
    node("handle", "VarHandleOp", device=C1, extra='attr { key: "shape" value { shape {} } }'),
    node("read", "ReadVariableOp", "handle"),
    constant("last", (16,), C0),
)


def test_what_a_schedule_ran_is_explained_as_the_placer_placed_it() -> None:
    found = schedule_placement(WORLD, costs="flat").placement
    names = ["A", "B", "handle", "read", "last"]
    assert [str(explain_node(found, name)) for name in names] == [str(explain_node(WORLD, name)) for name in names]
    assert "It requested /device:CPU:0 and got CPU:0." in str(explain_node(found, "last"))


def test_a_node_that_ran_leads_back_to_the_node_that_was_placed() -> None:
    graph = schedule_placement(WORLD, costs="flat").estimated.graph
    names = {
        part.name: WORLD.graph.names[i] for k, part in enumerate(graph.nodes) if (i := graph.node_of_program(k)) > 0
    }
    assert names == {
        "A": "A", "B": "B", "handle": "handle", "read": "read", "last": "last",
        "x/replicate/_0": "x", "x/replicate/_1": "x",
    }  # fmt: skip


def test_the_page_has_the_time_of_each_node_that_was_placed() -> None:
    data = schedule_data(schedule_placement(WORLD, costs="flat"))
    names = WORLD.graph.names[2:]
    assert [name for name, time in zip(names, data["times"], strict=True) if time] == ["A", "B"]
    assert {names[node] for node in data["node"]} == {"A", "B"}
