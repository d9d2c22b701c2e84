"""Small constants: one for each CPU that reads them, none where a single CPU is enough."""

from __future__ import annotations

from simplace.devices.device_set import local_devices
from simplace.graph.graph_def import parse_text
from simplace.partition.copies import list_copies
from simplace.partition.graph_partition import partition_graph
from simplace.pipeline import place_program
from simplace.placement.placement import Placement
from simplace.program.program import Program
from tests.worlds import constant, node, shipped

C0, C1, G0 = "/device:CPU:0", "/device:CPU:1", "/device:GPU:0"


def placed(*nodes: str) -> Placement:
    graph = parse_text("\n".join(nodes))
    return place_program(Program("world", "graph", graph), local_devices([("CPU", 2), ("GPU", 1)]), shipped())


def shown(placement: Placement) -> list[str]:
    names = placement.graph.names
    return [
        f"{c.tensor} {c.source[-5:]} {c.target[-5:]} {[names[i] for i in c.consumers]}"
        for c in list_copies(placement.placed)
    ]


def test_two_cpus_that_read_a_small_constant_get_one_each() -> None:
    placement = placed(
        constant("x", (16,), C0),
        node("A", "Neg", "x", device=C0),
        node("B", "Neg", "x", device=C1),
    )
    assert shown(placement) == []
    assert "  B = Neg(x/replicate/_1)\n  x/replicate/_1 = Const(^_SOURCE)\n" in str(partition_graph(placement.placed))


def test_a_gpu_reads_the_constant_of_the_first_cpu() -> None:
    placement = placed(
        constant("x", (16,), C1),
        node("A", "Neg", "x", device=C1),
        node("B", "Neg", "x", device=G0),
    )
    assert shown(placement) == ["x/replicate/_0:0 CPU:0 GPU:0 ['B']"]


def test_a_large_constant_is_sent() -> None:
    placement = placed(
        constant("x", (17,), C0),
        node("A", "Neg", "x", device=C0),
        node("B", "Neg", "x", device=C1),
    )
    assert shown(placement) == ["x:0 CPU:0 CPU:1 ['B']"]


def test_a_constant_that_something_waits_for_is_sent() -> None:
    placement = placed(
        constant("x", (16,), C0),
        node("A", "Neg", "x", device=C1),
        node("B", "NoOp", "^x", device=C0),
    )
    assert shown(placement) == ["x:0 CPU:0 CPU:1 ['A']"]


def test_one_reader_needs_no_replica() -> None:
    placement = placed(
        constant("x", (16,), C0),
        node("A", "Neg", "x", device=C1),
    )
    assert shown(placement) == ["x:0 CPU:0 CPU:1 ['A']"]


def test_what_a_constant_waits_for_is_waited_for_by_each() -> None:
    placement = placed(
        node("start", "NoOp", device=C0),
        constant("x", (16,), C0).replace('op: "Const"', 'op: "Const" input: "^start"'),
        node("A", "Neg", "x", device=C0),
        node("B", "Neg", "x", device=C1),
    )
    assert shown(placement) == ["^start CPU:0 CPU:1 ['x']"]
