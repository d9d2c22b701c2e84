"""Draw a placed graph partitioned into one subgraph per device, with the sends and receives between them."""

from __future__ import annotations

from dataclasses import dataclass

from simplace.partition.transfers import Copy, MemoryTypes
from simplace.placement.placement import Placement
from simplace.result import Placed
from simplace.views.figures.alike_devices import Alike, figure_boxes
from simplace.views.figures.box_edges import without_implied
from simplace.views.figures.captions import describe_placement
from simplace.views.figures.placement_figure import box_node, device_group, number_devices, what_is_copied
from simplace.views.text import quantities
from simplace.views.text.traffic_phrases import list_traffic
from viz import Edge, Figure, Node

_ONE_BY_ONE = 20  # transfers that are drawn as a pair each; more are put together by the boxes at their ends


@dataclass(frozen=True, slots=True)
class _Pair:
    """Record of the transfers that one send and one receive stand for, with the boxes at both ends."""

    source: int
    targets: tuple[int, ...]
    copies: tuple[Copy, ...]


def partition_figure(placed: Placed, limit: int = 40) -> Figure:
    """Return the subgraphs in at most about `limit` boxes besides the sends and receives.

    Each transfer between devices, or between the two memories of one, has its send and its receive; many are put
    together by the boxes that they join.
    """
    placement = placed.placement
    alike = figure_boxes(placement, limit)
    made, box_of = alike.boxes, alike.box_of
    pairs = _pair_transfers(placed.copies, box_of, alike.stands_for)
    memory = MemoryTypes(placement.placed)
    members: list[list[int]] = [[] for _ in made]
    for node, number in box_of.items():
        members[number].append(node)
    cut = [
        _drawn_pair(placement, pair, i, made[pair.source].device, made[pair.targets[0]].device)
        for i, pair in enumerate(pairs, 1)
    ]
    return Figure(
        title=f"{placed.title}, partitioned into {quantities.format_count(len(alike.stands_for), 'subgraph')}",
        caption=_write_caption(placed, sum(len(pair.copies) for pair in pairs)),
        groups=tuple(
            device_group(placed, alike.devices[name], i)
            for i, name in number_devices(placement)
            if name in alike.devices
        ),
        nodes=(
            *(box_node(placement, memory, str(i), box, members[i]) for i, box in enumerate(made)),
            *(node for nodes, _ in cut for node in nodes),
        ),
        edges=(*(edge for _, edges in cut for edge in edges), *_local_edges(placement, alike, pairs)),
        description=describe_placement(placed, "Partition"),
    )


def _write_caption(placed: Placed, drawn: int) -> str:
    hidden = len(placed.copy_columns) - drawn
    parts = list_traffic(placed.traffic) or ["nothing is sent"]
    parts += [f"{hidden} of them between nodes of one box"] if hidden else []
    return " · ".join(parts)


def _pair_transfers(copies: list[Copy], box_of: dict[int, int], stands_for: dict[str, str]) -> list[_Pair]:
    groups: dict[tuple[object, ...], list[Copy]] = {}
    for i, copy in enumerate(copies):
        if copy.producer not in box_of or not any(node in box_of for node in copy.consumers):
            continue
        one_by_one = len(copies) <= _ONE_BY_ONE
        end = stands_for.get(copy.target, copy.target)
        key = (i,) if one_by_one else (box_of[copy.producer], end, copy.is_control, copy.target_memory)
        groups.setdefault(key, []).append(copy)
    pairs = [_make_pair(group, box_of) for group in groups.values()]
    return [pair for pair in pairs if pair.targets != (pair.source,)]  # between nodes that are drawn as one


def _make_pair(copies: list[Copy], box_of: dict[int, int]) -> _Pair:
    targets = sorted({box_of[node] for copy in copies for node in copy.consumers if node in box_of})
    return _Pair(box_of[copies[0].producer], tuple(targets), tuple(copies))


def _drawn_pair(placement: Placement, pair: _Pair, number: int, home: str, goal: str) -> tuple[list[Node], list[Edge]]:
    first, count = pair.copies[0], len(pair.copies)
    send, receive = f"send {number}", f"receive {number}"
    tensors = {copy.tensor for copy in pair.copies}
    what = first.tensor if len(tensors) == 1 else quantities.format_count(len(tensors), "tensor")
    times = f" ×{count}" if count > 1 else ""
    nodes = [
        Node(send, _name_op(placement, first, "Send") + times, what, home, "send"),
        Node(receive, _name_op(placement, first, "Recv") + times, what, goal, "receive"),
    ]
    kind, size = ("control signal", "") if first.is_control else what_is_copied(pair.copies)
    label = f"{kind} · {size}" if size else kind
    before, after = ("control", "control") if first.is_control else ("data", "data")
    edges = [
        Edge(str(pair.source), send, before, count=count),  # type: ignore[arg-type]
        Edge(send, receive, "copy", label, count),
        *(Edge(receive, str(target), after) for target in pair.targets),  # type: ignore[arg-type]
    ]
    return nodes, edges


def _name_op(placement: Placement, copy: Copy, what: str) -> str:
    """Return the op's name in TensorFlow: one on a GPU whose tensor is in host memory is a _HostSend or _HostRecv."""
    device, memory = (copy.source, copy.source_memory) if what == "Send" else (copy.target, copy.target_memory)
    on_host = memory == "host" and placement.devices.by_name[device].type != "CPU"
    return f"_Host{what}" if on_host else f"_{what}"


def _local_edges(placement: Placement, alike: Alike, pairs: list[_Pair]) -> list[Edge]:
    """Return the data edges that need no transfer; between collapsed boxes without those that longer paths imply."""
    graph, box_of = placement.graph, alike.box_of
    sent = {(pair.source, target) for pair in pairs for target in pair.targets}
    found: dict[tuple[int, int], int] = {}
    for source, slot, target in zip(graph.edge_src, graph.edge_src_slot, graph.edge_dst, strict=True):
        ends = box_of.get(source, -1), box_of.get(target, -1)
        if slot < 0 or -1 in ends or ends[0] == ends[1] or ends in sent:
            continue
        found[ends] = found.get(ends, 0) + 1
    if len(alike.drawn) > len(alike.boxes):
        found = without_implied(found, set(found))
    return [Edge(str(one), str(other), "data", "", count) for (one, other), count in sorted(found.items())]
