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
    """Keep what the fetches and targets of `run` need; its feeds and fetches are assigned to the device `client`.

    Raises `TargetError` for a feed, fetch or target that is not in the graph.
    """
    nodes = {node.name: node for node in graph.op_nodes()}
    kept = []
    for i, feed in enumerate(run.feeds):
        _feed(graph, *_output(nodes, feed), i, client)
    for i, fetch in enumerate(run.fetches):
        kept.append(_fetch(graph, *_output(nodes, fetch), i, client))
    for target in run.targets:
        kept.append(_named(nodes, target))
    _keep(graph, kept)


def _feed(graph: GraphBuilder, fed: Node, slot: int, i: int, client: str) -> None:
    """Let the consumers of an output read an argument instead."""
    dtype = base(fed.out_types[slot])
    origin = Origin(fed.origin.function, fed.origin.name, fed.name, "feed")
    argument = graph.add_node(
        f"_arg_{fed.name}_{slot}_{i}", "_Arg", attrs={"T": dtype, "index": i}, origin=origin, types=((), (dtype,))
    )
    argument.assigned = client
    graph.add_control_edge(graph.source, argument)
    moves_control = fed.op in _PLACEHOLDERS
    moved = [e for e in fed.out_edges if e.src_slot == slot or (e.src_slot == CONTROL and moves_control)]
    for edge in moved:
        if edge.src_slot == CONTROL:
            graph.add_control_edge(argument, edge.dst)
        else:
            graph.add_edge(argument, 0, edge.dst, edge.dst_slot)
        graph.remove_edge(edge)


def _fetch(graph: GraphBuilder, fetched: Node, slot: int, i: int, client: str) -> Node:
    dtype = base(fetched.out_types[slot])
    result = graph.add_node(
        f"_retval_{fetched.name}_{slot}_{i}",
        "_Retval",
        attrs={"T": dtype, "index": i},
        origin=Origin(fetched.origin.function, fetched.origin.name, fetched.name, "fetch"),
        inputs=[(fetched, slot)],
        types=((dtype,), ()),
    )
    result.assigned = client
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
