"""Prune a session's graph to one run of it: feeds and fetches become arguments and results.

Mirrors `RewriteGraphForExecution` of tensorflow/core/graph/subgraph.cc, which the option place_pruned_graph puts before
placement (`GraphExecutionState::MakeForPrunedGraph`, common_runtime/graph_execution_state.cc).
"""

from __future__ import annotations

from simplace.errors import TargetError
from simplace.graph.algorithm import reverse_reachable
from simplace.graph.builder import CONTROL, GraphBuilder, Node, Origin
from simplace.graph.op_kinds import is_placeholder
from simplace.graph.tensor_id import parse_tensor_name
from simplace.program.program import SessionRun
from simplace.program.run_ends import Rewrite, connection_rewrite, feed_rewrite, fetch_rewrite


def rewrite_for_execution(graph: GraphBuilder, run: SessionRun, client: str) -> None:
    """Keep what the fetches and targets of `run` need; feeds and fetches without a device are assigned to `client`.

    Raises `TargetError` for a feed, fetch or target that is not in the graph.
    """
    nodes = {node.name: node for node in graph.op_nodes()}
    kept = []
    fed_on, fetched_on = dict(run.feed_devices), dict(run.fetch_devices)
    for i, feed in enumerate(run.feeds):
        fed, slot = _find_output(nodes, feed)
        _redirect_consumers(
            graph, fed, slot, _add_feed_node(graph, fed, slot, -1 if run.by_rendezvous else i, fed_on.get(feed, client))
        )
    for source, replaced in run.connections:
        fed, slot = _find_output(nodes, replaced)
        _redirect_consumers(graph, fed, slot, _add_connection_node(graph, fed, slot, *_find_output(nodes, source)))
    for i, fetch in enumerate(run.fetches):
        fetched, slot = _find_output(nodes, fetch)
        number, device = -1 if run.by_rendezvous else i, fetched_on.get(fetch, client)
        kept.append(_add_fetch_node(graph, fetched, slot, number, device))
    for target in run.targets:
        kept.append(_find_node(nodes, target))
    _prune_for_targets(graph, kept)


def _add_feed_node(graph: GraphBuilder, fed: Node, slot: int, i: int, device: str) -> Node:
    made = _add_rewrite(graph, feed_rewrite(fed.name, slot, fed.out_types[slot], i), fed, "feed")
    made.assigned = device
    return made


def _add_connection_node(graph: GraphBuilder, fed: Node, slot: int, source: Node, source_slot: int) -> Node:
    made = _add_rewrite(graph, connection_rewrite(fed.name, slot, source.out_types[source_slot]), fed, "feed")
    graph.add_edge(source, source_slot, made, 0)
    return made


def _add_rewrite(graph: GraphBuilder, rewrite: Rewrite, near: Node, made_by: str) -> Node:
    name, op, attrs, types = rewrite
    origin = Origin(near.origin.function, near.origin.name, near.name, made_by)
    return graph.add_node(name, op, attrs=attrs, origin=origin, types=types)


def _redirect_consumers(graph: GraphBuilder, fed: Node, slot: int, argument: Node) -> None:
    """Redirect the consumers of an output to another node."""
    graph.add_control_edge(graph.source, argument)
    moves_control = is_placeholder(fed.op)
    moved = [e for e in fed.out_edges if e.src_slot == slot or (e.src_slot == CONTROL and moves_control)]
    for edge in moved:
        if edge.src_slot == CONTROL:
            graph.add_control_edge(argument, edge.dst)
        else:
            graph.add_edge(argument, 0, edge.dst, edge.dst_slot)
        graph.remove_edge(edge)


def _add_fetch_node(graph: GraphBuilder, fetched: Node, slot: int, i: int, device: str) -> Node:
    result = _add_rewrite(graph, fetch_rewrite(fetched.name, slot, fetched.out_types[slot], i), fetched, "fetch")
    graph.add_edge(fetched, slot, result, 0)
    result.assigned = device
    graph.add_control_edge(result, graph.sink)
    return result


def _prune_for_targets(graph: GraphBuilder, targets: list[Node]) -> None:
    """Remove every node that no target needs, then connect nodes without edges to source and sink."""
    in_edges = {node.id: node.in_edges for node in (graph.source, *graph.op_nodes())}
    needed = reverse_reachable((node.id for node in targets), lambda node: (edge.src.id for edge in in_edges[node]))
    for node in list(graph.op_nodes()):
        if node.id not in needed:
            graph.remove_node(node)
    for node in graph.op_nodes():
        if not node.in_edges:
            graph.add_control_edge(graph.source, node)
        if not node.out_edges:
            graph.add_control_edge(node, graph.sink)


def _find_output(nodes: dict[str, Node], tensor: str) -> tuple[Node, int]:
    name, slot = parse_tensor_name(tensor)
    node = _find_node(nodes, name)
    if not 0 <= slot < len(node.out_types):
        raise TargetError(f"the run names {tensor!r}, but {name!r} has {len(node.out_types)} outputs")
    return node, slot


def _find_node(nodes: dict[str, Node], name: str) -> Node:
    if name not in nodes:
        raise TargetError(f"the run names {name!r}, but the graph has no node of that name")
    return nodes[name]
