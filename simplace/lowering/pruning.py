"""Cut a session's graph down to one run of it: feeds and fetches become arguments and results, the rest goes.

Mirrors `RewriteGraphForExecution` of tensorflow/core/graph/subgraph.cc, which the option place_pruned_graph puts before
placement (`GraphExecutionState::MakeForPrunedGraph`, common_runtime/graph_execution_state.cc).
"""

from __future__ import annotations

from simplace.errors import TargetError
from simplace.graph.build import CONTROL, GraphBuilder, Node, Origin
from simplace.graph.dtypes import base
from simplace.importers.program import SessionRun
from simplace.lowering.construct import split_input

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")


def prune(graph: GraphBuilder, run: SessionRun, client: str) -> None:
    """Keep what the fetches and targets of `run` need; feeds and fetches without a device are assigned to `client`.

    Raises `TargetError` for a feed, fetch or target that is not in the graph.
    """
    nodes = {node.name: node for node in graph.op_nodes()}
    kept = []
    fed_on, fetched_on = dict(run.feed_devices), dict(run.fetch_devices)
    for i, feed in enumerate(run.feeds):
        fed, slot = _output(nodes, feed)
        _feed(graph, fed, slot, _fed(graph, fed, slot, -1 if run.by_rendezvous else i, fed_on.get(feed, client)))
    for source, replaced in run.connections:
        fed, slot = _output(nodes, replaced)
        _feed(graph, fed, slot, _connected(graph, fed, slot, *_output(nodes, source)))
    for i, fetch in enumerate(run.fetches):
        fetched, slot = _output(nodes, fetch)
        number, device = -1 if run.by_rendezvous else i, fetched_on.get(fetch, client)
        kept.append(_fetch(graph, fetched, slot, number, device))
    for target in run.targets:
        kept.append(_named(nodes, target))
    _keep(graph, kept)


def _fed(graph: GraphBuilder, fed: Node, slot: int, i: int, device: str) -> Node:
    """Make argument i, or for -1 what is received."""
    dtype = base(fed.out_types[slot])
    name, op, attrs = f"_arg_{fed.name}_{slot}_{i}", "_Arg", {"T": dtype, "index": i}
    if i < 0:
        name, op, attrs = f"_recv_{fed.name}_{slot}", "_Recv", {"tensor_type": dtype}
    origin = Origin(fed.origin.function, fed.origin.name, fed.name, "feed")
    made = graph.add_node(name, op, attrs=attrs, origin=origin, types=((), (dtype,)))
    made.assigned = device
    return made


def _connected(graph: GraphBuilder, fed: Node, slot: int, source: Node, source_slot: int) -> Node:
    """Make what hands on the output that takes the place of another one."""
    dtype = base(source.out_types[source_slot])
    return graph.add_node(
        f"_identity_{fed.name}_{slot}",
        "Identity",
        attrs={"T": dtype},
        origin=Origin(fed.origin.function, fed.origin.name, fed.name, "feed"),
        inputs=[(source, source_slot)],
        types=((dtype,), (dtype,)),
    )


def _feed(graph: GraphBuilder, fed: Node, slot: int, argument: Node) -> None:
    """Let the consumers of an output read another node instead."""
    graph.add_control_edge(graph.source, argument)
    moves_control = fed.op in _PLACEHOLDERS
    moved = [e for e in fed.out_edges if e.src_slot == slot or (e.src_slot == CONTROL and moves_control)]
    for edge in moved:
        if edge.src_slot == CONTROL:
            graph.add_control_edge(argument, edge.dst)
        else:
            graph.add_edge(argument, 0, edge.dst, edge.dst_slot)
        graph.remove_edge(edge)


def _fetch(graph: GraphBuilder, fetched: Node, slot: int, i: int, device: str) -> Node:
    """Make result i, or for -1 what is sent."""
    dtype = base(fetched.out_types[slot])
    name, op, attrs = f"_retval_{fetched.name}_{slot}_{i}", "_Retval", {"T": dtype, "index": i}
    if i < 0:
        name, op, attrs = f"_send_{fetched.name}_{slot}", "_Send", {"T": dtype}
    result = graph.add_node(
        name,
        op,
        attrs=attrs,
        origin=Origin(fetched.origin.function, fetched.origin.name, fetched.name, "fetch"),
        inputs=[(fetched, slot)],
        types=((dtype,), ()),
    )
    result.assigned = device
    graph.add_control_edge(result, graph.sink)
    return result


def _keep(graph: GraphBuilder, targets: list[Node]) -> None:
    """Remove every node that no target needs, then tie loose ends to source and sink."""
    needed = {node.id for node in targets}
    reached = [*targets]
    for node in reached:  # grows while it is walked
        for edge in node.in_edges:
            if edge.src.id not in needed:
                needed.add(edge.src.id)
                reached.append(edge.src)
    for node in list(graph.op_nodes()):
        if node.id not in needed:
            graph.remove_node(node)
    for node in graph.op_nodes():
        if not node.in_edges:
            graph.add_control_edge(graph.source, node)
        if not node.out_edges:
            graph.add_control_edge(node, graph.sink)


def _output(nodes: dict[str, Node], tensor: str) -> tuple[Node, int]:
    name, slot = split_input(tensor)
    node = _named(nodes, name)
    if not 0 <= slot < len(node.out_types):
        raise TargetError(f"the run names {tensor!r}, but {name!r} has {len(node.out_types)} outputs")
    return node, slot


def _named(nodes: dict[str, Node], name: str) -> Node:
    if name not in nodes:
        raise TargetError(f"the run names {name!r}, but the graph has no node called so")
    return nodes[name]
