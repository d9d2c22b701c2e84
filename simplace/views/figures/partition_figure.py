"""Draw a placed graph partitioned into one subgraph per device, with the sends and receives between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from simplace.graph.op_kinds import is_constant
from simplace.partition.transfers import Copy
from simplace.placement.placement import Placement
from simplace.result import Placed
from simplace.views.figures.acyclic_groups import has_cycle
from simplace.views.figures.alike_devices import Alike, count_fold, figure_boxes
from simplace.views.figures.box_edges import without_implied
from simplace.views.figures.captions import describe_placement
from simplace.views.figures.overview_title import write_message
from simplace.views.figures.placement_figure import (
    BRIEF,
    arrange_in_rows,
    draw_devices,
    draw_nodes,
    is_crowded,
    list_fed_and_fetched,
    what_is_copied,
)
from simplace.views.text import quantities
from simplace.views.text.traffic_phrases import format_sent, list_traffic
from viz import Edge, EdgeKind, Figure, Node
from viz.shortening import fit_all

_ONE_BY_ONE = 20  # transfers that are drawn as a pair each; more are put together by what they join
_WIDE = 20  # characters of a tensor's name
_QUARTERS = 4  # of the boxes of a figure: what sends and receives leave is tried in such steps

# What a send and a receive are drawn for: a transfer, those of two boxes, of two devices; all of a device share one in
# "ends"; in "counts" they are only counted in the boxes.
_Joined = Literal["transfer", "boxes", "devices", "ends", "counts"]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Record of the transfers between one send and one receive, with the boxes at both ends.

    `send` and `receive` are the ids of what is drawn for them, those of the boxes where nothing else is.
    """

    send: str
    receive: str
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    copies: tuple[Copy, ...]


def partition_figure(placed: Placed, limit: int = 40) -> Figure:
    """Return the subgraphs in at most `limit` boxes, sends and receives included, or one a device if these are more.

    Each transfer between devices, or between the two memories of one, has its send and its receive; many are put
    together by the boxes that they join, or else by the devices. Where that is too much, boxes say how many they have.
    """
    placement = placed.placement
    alike, pairs = _choose_detail(placed, limit)
    local = _find_local_edges(placement, alike, pairs)
    closing = _find_closing(pairs, local)
    is_brief = limit <= BRIEF or is_crowded(alike, len(pairs))
    figure = Figure(
        title=_write_title(placed, alike),
        caption=_write_caption(placed, alike, sum(len(pair.copies) for pair in pairs)),
        groups=draw_devices(placed, alike),
        nodes=(*_draw_boxes(placed, alike, pairs), *_draw_ends(placement, alike, pairs)),
        edges=(
            *(_draw_transfer(pair, i in closing, is_brief) for i, pair in enumerate(pairs)),
            *_draw_edges(pairs),
            *(Edge(str(one), str(other), "data", "", count) for (one, other), count in sorted(local.items())),
        ),
        description=describe_placement(placed, "Partition"),
    )
    return arrange_in_rows(figure)


def _choose_detail(placed: Placed, limit: int) -> tuple[Alike, list[_Pair]]:
    """Return the boxes and the pairs of the most detailed figure that has at most `limit` of both."""
    made: dict[int, Alike] = {}
    fold = count_fold(placed, limit)
    for room, joined in _list_details(limit, len(placed.copies)):
        alike = made[room] if room in made else made.setdefault(room, figure_boxes(placed, room, fold))
        pairs = _pair_transfers(placed.copies, alike, joined)
        drawn = {*map(str, range(len(alike.boxes))), *(end for pair in pairs for end in (pair.send, pair.receive))}
        if len(drawn) <= limit:
            break
    return alike, pairs


def _list_details(limit: int, copies: int) -> Iterator[tuple[int, _Joined]]:
    """Yield how many boxes there may be besides sends and receives, and how these are put together."""
    rooms = [max(limit * quarters // _QUARTERS, 1) for quarters in range(_QUARTERS, 0, -1)]
    if copies <= _ONE_BY_ONE:
        yield from ((room, "transfer") for room in rooms[:-1])
    yield from ((room, "boxes") for room in rooms[:-1])
    yield from ((room, "devices") for room in rooms)
    yield from ((room, "ends") for room in (*rooms, 1))
    yield 1, "counts"


def _write_title(placed: Placed, alike: Alike) -> str:
    """Return how many subgraphs there are, and what they send each other; none of a graph that is refused.

    Where nothing but what a session fetches or is fed is on a device, that is a subgraph, too.
    """
    if placed.placement.refusal is not None:
        return write_message(placed)
    copies = placed.traffic.copies
    ends = {device for copy in placed.step_copies for device in (copy.source, copy.target)}
    found = quantities.format_count(len(ends.union(alike.stands_for)), "subgraph")
    sent = f"{format_sent('tensor', copies)}, by _Send and _Recv"
    return f"{found}: {sent}" if copies.count else f"{found}: no tensor is sent"


def _write_caption(placed: Placed, alike: Alike, drawn: int) -> str:
    unread = len(placed.copies) - sum(_is_drawn(copy, alike) for copy in placed.copies)
    within = len(placed.copies) - unread - drawn
    left_out = [f"{quantities.format_count(within, 'transfer')} within boxes"] if within else []
    left_out += [f"{quantities.format_count(unread, 'transfer')} of ops without tensors"] if unread else []
    left_out += list_fed_and_fetched(placed)
    parts = [placed.title, *(list_traffic(placed.traffic) or ["nothing is sent"])]
    return " · ".join([*parts, f"not drawn: {', '.join(left_out)}"] if left_out else parts)


def _is_drawn(copy: Copy, alike: Alike) -> bool:
    """Return whether both ends of a transfer are in boxes."""
    return copy.producer in alike.box_of and any(node in alike.box_of for node in copy.consumers)


def _pair_transfers(copies: list[Copy], alike: Alike, joined: _Joined) -> list[_Pair]:
    box_of, groups = alike.box_of, dict[tuple[object, ...], list[Copy]]()
    stands_for = alike.stands_for
    for i, copy in enumerate(copies):
        if not _is_drawn(copy, alike):
            continue
        start, end = (stands_for.get(device, device) for device in (copy.source, copy.target))
        kind = copy.is_control, copy.source_memory, copy.target_memory
        keys = {"transfer": (i,), "boxes": (box_of[copy.producer], end, *kind), "devices": (start, end, *kind)}
        groups.setdefault(keys.get(joined, (start, end, copy.is_control)), []).append(copy)
    pairs = []
    for number, group in enumerate(groups.values(), 1):
        start, end = (stands_for.get(device, device) for device in (group[0].source, group[0].target))
        ids = (start, end) if joined == "ends" else (number, number)
        pair = _make_pair(group, box_of, f"send {ids[0]}", f"receive {ids[1]}")
        inside = replace(pair, send=str(pair.sources[0]), receive=str(pair.targets[0]))
        pairs.append(inside if joined == "counts" else pair)
    return [pair for pair in pairs if pair.targets != pair.sources]  # between nodes that are drawn as one


def _make_pair(copies: list[Copy], box_of: dict[int, int], send: str, receive: str) -> _Pair:
    sources = sorted({box_of[copy.producer] for copy in copies})
    targets = sorted({box_of[node] for copy in copies for node in copy.consumers if node in box_of})
    return _Pair(send, receive, tuple(sources), tuple(targets), tuple(copies))


def _find_closing(pairs: list[_Pair], local: dict[tuple[int, int], int]) -> set[int]:
    """Return the places of pairs that would close a cycle of boxes which has none without sends and receives."""
    drawn: list[tuple[str, str]] = [(str(one), str(other)) for one, other in local]
    if has_cycle(drawn):
        return set()
    drawn += [(str(source), pair.send) for pair in pairs for source in pair.sources if str(source) != pair.send]
    drawn += [(pair.receive, str(target)) for pair in pairs for target in pair.targets if str(target) != pair.receive]
    closing = set()
    for i, pair in enumerate(pairs):
        if has_cycle([*drawn, (pair.send, pair.receive)]):
            closing.add(i)
        else:
            drawn.append((pair.send, pair.receive))
    return closing


def _draw_boxes(placed: Placed, alike: Alike, pairs: list[_Pair]) -> list[Node]:
    """Return the nodes of the boxes; those that sends and receives are only counted in say how many."""
    counts: dict[str, Counter[str]] = {}
    for pair in pairs:
        counts.setdefault(pair.receive, Counter())["_Recv"] += len(pair.copies)
        counts.setdefault(pair.send, Counter())["_Send"] += len(pair.copies)
    said = {end: ", ".join(f"{op} ×{count}" for op, count in found.items()) for end, found in counts.items()}
    return [replace(box, sublabel=said.get(box.id, box.sublabel)) for box in draw_nodes(placed, alike)]


def _draw_ends(placement: Placement, alike: Alike, pairs: list[_Pair]) -> Iterator[Node]:
    """Yield the sends and receives, each with the number of its transfers."""
    ends: dict[str, list[tuple[Copy, int]]] = {}
    for pair in pairs:
        ends.setdefault(pair.send, []).extend((copy, pair.sources[0]) for copy in pair.copies)
        ends.setdefault(pair.receive, []).extend((copy, pair.targets[0]) for copy in pair.copies)
    is_named = len({pair.send for pair in pairs}) == len(pairs)  # else there is little room
    for end, found in ((end, found) for end, found in ends.items() if not end.isdecimal()):
        (first, box), count = found[0], len(found)
        tensors = {copy.tensor for copy, _ in found}
        is_one = len(tensors) == 1 and is_named
        what = fit_all([first.tensor], _WIDE)[0] if is_one else quantities.format_count(len(tensors), "tensor")
        is_send = end.startswith("send")
        name = _name_op(placement, first, "Send" if is_send else "Recv") + (f" ×{count}" if count > 1 else "")
        yield Node(end, name, what, alike.boxes[box].device, "send" if is_send else "receive",
                   tooltip=first.tensor if is_one else "")  # fmt: skip


def _draw_transfer(pair: _Pair, closes: bool, is_brief: bool) -> Edge:
    """Return the edge from a send to its receive; one that closes a cycle joins devices, not boxes."""
    is_control = pair.copies[0].is_control
    kind, size = ("control signal", "") if is_control else what_is_copied(pair.copies, is_brief=is_brief)
    label = f"{kind} · {size}" if size else kind
    return Edge(pair.send, pair.receive, "copy", label, len(pair.copies), closes, closes)


def _draw_edges(pairs: list[_Pair]) -> Iterator[Edge]:
    """Yield the edges to sends and from receives, one between two boxes."""
    found: dict[tuple[str, str, EdgeKind], int] = {}
    for pair in pairs:
        kind: EdgeKind = "control" if pair.copies[0].is_control else "data"
        ends = [(str(source), pair.send) for source in pair.sources]
        ends += [(pair.receive, str(target)) for target in pair.targets]
        for one, other in ends:
            found[one, other, kind] = found.get((one, other, kind), 0) + 1
    yield from (Edge(one, other, kind, count=count) for (one, other, kind), count in found.items() if one != other)


def _name_op(placement: Placement, copy: Copy, what: str) -> str:
    """Return the op's name in TensorFlow: one on a GPU whose tensor is in host memory is a _HostSend or _HostRecv."""
    device, memory = (copy.source, copy.source_memory) if what == "Send" else (copy.target, copy.target_memory)
    on_host = memory == "host" and placement.devices.by_name[device].type != "CPU"
    return f"_Host{what}" if on_host else f"_{what}"


def _find_local_edges(placement: Placement, alike: Alike, pairs: list[_Pair]) -> dict[tuple[int, int], int]:
    """Return the data edges that need no transfer; between collapsed boxes without those that longer paths imply."""
    graph, box_of = placement.graph, alike.box_of
    sent = {(source, target) for pair in pairs for source in pair.sources for target in pair.targets}
    found: dict[tuple[int, int], int] = {}
    for source, slot, target in zip(graph.edge_src, graph.edge_src_slot, graph.edge_dst, strict=True):
        ends = box_of.get(source, -1), box_of.get(target, -1)
        is_folded = source not in alike.drawn and is_constant(graph.ops[source])  # with the first of its consumers
        if slot < 0 or -1 in ends or ends[0] == ends[1] or ends in sent or is_folded:
            continue
        found[ends] = found.get(ends, 0) + 1
    return without_implied(found, set(found)) if len(alike.drawn) > len(alike.boxes) else found
