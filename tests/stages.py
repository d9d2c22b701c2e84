"""What must hold of the record that each stage of the pipeline hands on."""

from __future__ import annotations

from simplace.executor.execution import Execution
from simplace.graph.graph import Graph
from simplace.graph.verify import verify_graph
from simplace.partition.graph_partition import PartitionedGraph
from simplace.placement.placement import Placement


def verify_stage(stage: str, record: object) -> None:
    """Raise `AssertionError` where the record of a stage does not hold together."""
    match record:
        case Graph():
            verify_graph(record)
        case Placement():
            _verify_placement(record)
        case PartitionedGraph():
            _verify_partition(record)
        case Execution():
            _verify_execution(record)
        case _:
            assert stage in ("import", "estimate costs"), f"{stage} makes a record that nobody verifies"


def _verify_placement(placement: Placement) -> None:
    placed = placement.placed
    assert placed.is_whole or placement.refusal, "a placement that is not refused has a device for every node"
    unknown = {device for device in placed.device_of if device} - set(placement.devices.by_name)
    assert not unknown, f"devices of nodes are in the device set, but these are not: {unknown}"
    assert sorted(placement.order) == sorted(placement.decisions), "each decision has its place in the order"


def _verify_partition(graph: PartitionedGraph) -> None:
    placed = graph.placed
    verify_graph(placed.graph, graph.rewritten.loop_merges)
    parts = sorted((part.origin, part.device) for part in graph.nodes if part.origin >= 0)
    assert parts == list(enumerate(placed.device_of))[2:], "each node is in the subgraph of its device, once"
    for edges in graph.outs:
        for edge in edges:
            ends = {graph.nodes[edge.src].device, graph.nodes[edge.dst].device}
            assert len(ends) == 1, f"{graph.nodes[edge.src].name} -> {graph.nodes[edge.dst].name} stays on one device"
    for send, receive in graph.receiver.items():
        assert (graph.nodes[send].role, graph.nodes[receive].role) == ("send", "recv"), "a send has a receive"
        assert graph.nodes[send].copy == graph.nodes[receive].copy, "a send and its receive serve one copy"


def _verify_execution(execution: Execution) -> None:
    trace = execution.trace
    for span in trace.spans:
        assert 0 <= span.ready <= span.start <= span.end <= trace.makespan, f"{span} lies inside the run"
    assert list(trace.steps) == sorted(trace.steps), "steps end one after the other"
