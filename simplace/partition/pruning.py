"""Cut down a session's placed graph to what one run needs.

Mirrors tensorflow/core/graph/subgraph.cc: what is fed comes from an argument and what is fetched goes to a result, both
on the session's first CPU if the run names no other device, numbered in its order; only what a result or a target
depends on is kept. A partial run, and each run of a master, receives and sends the two instead
(`use_function_convention`).
"""

from __future__ import annotations

from simplace.errors import NodeNotFoundError
from simplace.graph import dtypes
from simplace.graph.build import CONTROL
from simplace.importers.program import SessionRun
from simplace.partition.draft import Draft, Rewritten
from simplace.placement.placement import Placement

_SOURCE = 0
_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")


def prune(placement: Placement, run: SessionRun) -> Rewritten:
    """Return the graph of a run; raise `NodeNotFoundError` for a name that the placed graph does not have."""
    draft = Draft(placement)
    client = placement.devices.devices[0].name
    fed_on, fetched_on = dict(run.feed_devices), dict(run.fetch_devices)
    for i, feed in enumerate(run.feeds):
        node, slot = _tensor(placement, feed)
        _feed(draft, node, slot, _fed(draft, node, slot, fed_on.get(feed, client), -1 if run.by_rendezvous else i))
    for source, replaced in run.connections:
        node, slot = _tensor(placement, replaced)
        _feed(draft, node, slot, _connected(draft, node, slot, *_tensor(placement, source)))
    results = [
        _fetch(draft, *_tensor(placement, fetch), fetched_on.get(fetch, client), -1 if run.by_rendezvous else i)
        for i, fetch in enumerate(run.fetches)
    ]
    wanted = [*results, *(_tensor(placement, target)[0] for target in run.targets)]
    needed = _behind(draft, wanted)
    for node in range(2, len(draft.names)):
        if node not in needed:
            draft.remove_node(node)
    return draft.finished()


def _feed(draft: Draft, node: int, slot: int, argument: int) -> None:
    kept = []
    moved = [(_SOURCE, CONTROL, argument, CONTROL)]
    for edge in draft.edges:
        source, source_slot, end, end_slot = edge
        if source == node and source_slot == slot:
            moved.append((argument, 0, end, end_slot))
        elif source == node and source_slot == CONTROL and draft.ops[node] in _PLACEHOLDERS:
            moved.append((argument, CONTROL, end, CONTROL))
        else:
            kept.append(edge)
    draft.edges = kept + moved


def _fed(draft: Draft, node: int, slot: int, device: str, index: int) -> int:
    """Add the argument of a number, or for -1 what is received."""
    dtype = dtypes.DataType(dtypes.base(draft.out_types[node][slot]))
    name, types = f"{draft.names[node]}_{slot}", ((), (dtype,))
    if index < 0:
        return draft.add_node(f"_recv_{name}", "_Recv", device, {"tensor_type": dtype}, types)
    return draft.add_node(f"_arg_{name}_{index}", "_Arg", device, {"T": dtype, "index": index}, types)


def _connected(draft: Draft, node: int, slot: int, source: int, source_slot: int) -> int:
    """Add what stands for an output that another one takes the place of."""
    dtype = dtypes.DataType(dtypes.base(draft.out_types[source][source_slot]))
    name, device = f"_identity_{draft.names[node]}_{slot}", draft.devices[node]
    made = draft.add_node(name, "Identity", device, {"T": dtype}, ((dtype,), (dtype,)))
    draft.add_edge(source, source_slot, made, 0)
    return made


def _fetch(draft: Draft, node: int, slot: int, device: str, index: int) -> int:
    """Add the result of a number, or for -1 what is sent."""
    dtype = dtypes.DataType(dtypes.base(draft.out_types[node][slot]))
    name, types = f"{draft.names[node]}_{slot}", ((dtype,), ())
    if index < 0:
        result = draft.add_node(f"_send_{name}", "_Send", device, {"T": dtype}, types)
    else:
        result = draft.add_node(f"_retval_{name}_{index}", "_Retval", device, {"T": dtype, "index": index}, types)
    draft.add_edge(node, slot, result, 0)
    return result


def _behind(draft: Draft, wanted: list[int]) -> set[int]:
    """Return the nodes that others depend on, themselves included."""
    before: list[list[int]] = [[] for _ in draft.names]
    for source, _, end, _ in draft.edges:
        before[end].append(source)
    found = set(wanted)
    while wanted:
        for source in before[wanted.pop()]:
            if source not in found:
                found.add(source)
                wanted.append(source)
    return found


def _tensor(placement: Placement, name: str) -> tuple[int, int]:
    node, _, slot = name.partition(":")
    if node not in placement.graph.ids:
        raise NodeNotFoundError(f"{placement.program.name} has no node {node!r}")
    return placement.graph.ids[node], int(slot or 0)
