"""Prune a session's placed graph to what one run needs.

Mirrors tensorflow/core/graph/subgraph.cc: what is fed comes from an argument and what is fetched goes to a result, both
on the session's first CPU if the run names no other device, numbered in its order; only what a result or a target
depends on is kept. A partial run, and each run of a master, receives and sends the two instead
(`use_function_convention`).
"""

from __future__ import annotations

from simplace.errors import NodeNotFoundError
from simplace.graph.algorithm import reverse_reachable
from simplace.graph.builder import CONTROL
from simplace.graph.op_kinds import is_placeholder
from simplace.partition.rewritten_graph import Draft, Rewritten
from simplace.program.placed_graph import PlacedGraph
from simplace.program.program import SessionRun
from simplace.program.run_ends import Rewrite, connection_rewrite, feed_rewrite, fetch_rewrite

_SOURCE = 0


def rewrite_for_run(placed: PlacedGraph, run: SessionRun) -> Rewritten:
    """Return the graph of a run; raise `NodeNotFoundError` for a name that the placed graph does not have."""
    draft = Draft(placed)
    client = placed.devices.devices[0].name
    fed_on, fetched_on = dict(run.feed_devices), dict(run.fetch_devices)
    for i, feed in enumerate(run.feeds):
        node, slot = _parse_tensor(placed, feed)
        _redirect_consumers(
            draft,
            node,
            slot,
            _add_feed_node(draft, node, slot, fed_on.get(feed, client), -1 if run.by_rendezvous else i),
        )
    for source, replaced in run.connections:
        node, slot = _parse_tensor(placed, replaced)
        _redirect_consumers(draft, node, slot, _add_connection_node(draft, node, slot, *_parse_tensor(placed, source)))
    results = [
        _add_fetch_node(
            draft, *_parse_tensor(placed, fetch), fetched_on.get(fetch, client), -1 if run.by_rendezvous else i
        )
        for i, fetch in enumerate(run.fetches)
    ]
    wanted = [*results, *(_parse_tensor(placed, target)[0] for target in run.targets)]
    needed = _find_dependencies(draft, wanted)
    for node in draft.op_ids:
        if node not in needed:
            draft.remove_node(node)
    return draft.finished()


def _redirect_consumers(draft: Draft, node: int, slot: int, argument: int) -> None:
    kept = []
    moved = [(_SOURCE, CONTROL, argument, CONTROL)]
    for edge in draft.edges:
        source, source_slot, end, end_slot = edge
        if source == node and source_slot == slot:
            moved.append((argument, 0, end, end_slot))
        elif source == node and source_slot == CONTROL and is_placeholder(draft.ops[node]):
            moved.append((argument, CONTROL, end, CONTROL))
        else:
            kept.append(edge)
    draft.edges = kept + moved


def _add_feed_node(draft: Draft, node: int, slot: int, device: str, index: int) -> int:
    return _add_rewrite(draft, feed_rewrite(draft.names[node], slot, draft.out_types[node][slot], index), device)


def _add_connection_node(draft: Draft, node: int, slot: int, source: int, source_slot: int) -> int:
    dtype = draft.out_types[source][source_slot]
    made = _add_rewrite(draft, connection_rewrite(draft.names[node], slot, dtype), draft.devices[node])
    draft.add_edge(source, source_slot, made, 0)
    return made


def _add_fetch_node(draft: Draft, node: int, slot: int, device: str, index: int) -> int:
    result = _add_rewrite(draft, fetch_rewrite(draft.names[node], slot, draft.out_types[node][slot], index), device)
    draft.add_edge(node, slot, result, 0)
    return result


def _add_rewrite(draft: Draft, rewrite: Rewrite, device: str) -> int:
    name, op, attrs, types = rewrite
    return draft.add_node(name, op, device, attrs, types)


def _find_dependencies(draft: Draft, wanted: list[int]) -> set[int]:
    """Return the nodes that others depend on, themselves included."""
    before: list[list[int]] = [[] for _ in draft.names]
    for source, _, end, _ in draft.edges:
        before[end].append(source)
    return reverse_reachable(wanted, before.__getitem__)


def _parse_tensor(placed: PlacedGraph, name: str) -> tuple[int, int]:
    node, _, slot = name.partition(":")
    if node not in placed.graph.ids:
        raise NodeNotFoundError(f"{placed.program.name} has no node {node!r}")
    return placed.graph.ids[node], int(slot or 0)
