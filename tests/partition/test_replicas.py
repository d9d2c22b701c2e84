"""What is placed on a composite device: one node for each of its devices, and no copies between them."""

from __future__ import annotations

import pytest

from simplace.devices.device_set import DeviceSet, make_device
from simplace.partition.copies import list_copies
from simplace.partition.rewrite_graph import rewrite_placed_graph
from simplace.pipeline import place_program
from simplace.program.placed_graph import PlacedGraph
from tests.lowering.worlds import CPU0, DEVICES, GPU0, GPU1, TABLE, call_program, function

COMPOSITE = CPU0.replace("CPU:0", "COMPOSITE:0")
READS = """
    a = ReadVariableOp(v) @/device:GPU:0 {dtype=float}
    b = ReadVariableOp(v) @/device:GPU:1 {dtype=float}
    done = NoOp(^v) @/device:CPU:0
"""


def place(*members: str) -> PlacedGraph:
    """Place a function that reads a packed variable on two GPUs."""
    composite = make_device(COMPOSITE, members=members)
    body = function("f(v: resource) -> x: float, y: float", READS, {"x": "a:value:0", "y": "b:value:0"})
    placement = place_program(call_program(body, devices=(COMPOSITE,)), DeviceSet([*DEVICES, composite]), TABLE)
    assert placement.refusal is None
    return placement.placed


@pytest.mark.parametrize("members", [(GPU0, GPU1), (GPU1, GPU0)])
def test_each_device_has_an_argument_of_its_own(members: tuple[str, ...]) -> None:
    rewritten = rewrite_placed_graph(place(*members))
    graph = rewritten.placed.graph
    lines = {line.partition(" = ")[0]: line.partition(" = ")[2] for line in str(graph).splitlines()}
    first, second = (f"v/R{members.index(each)}" for each in (GPU0, GPU1))
    assert (lines["a"], lines["b"], lines["done"]) == (
        f"ReadVariableOp({first})",
        f"ReadVariableOp({second})",
        "NoOp(^v/R0, ^v/R1)",
    )
    assert "v" not in lines
    assert [rewritten.placed.device(graph.names.index(f"v/R{i}")) for i in range(2)] == list(members)
    assert not any("v" in copy.tensor for copy in list_copies(place(*members)) if not copy.is_control)


def test_one_device_takes_the_argument() -> None:
    placed = rewrite_placed_graph(place(GPU0)).placed
    assert placed.device(placed.graph.names.index("v")) == GPU0
