"""Draw a placement as an annotated device graph: what to draw; `viz` knows how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from simplace.graph import dtypes
from simplace.partition.transfers import Copy, MemoryTypes
from simplace.placement.placement import Placement
from simplace.result import Placed
from simplace.views.figures.acyclic_groups import has_cycle
from simplace.views.figures.alike_devices import Alike, figure_boxes
from simplace.views.figures.box_edges import BoxEdges, Ends, box_edges, without_implied
from simplace.views.figures.boxes import Box
from simplace.views.figures.captions import describe_placement
from simplace.views.figures.granted_requests import format_required, format_ungranted
from simplace.views.figures.overview_title import write_message
from simplace.views.text import quantities
from simplace.views.text.traffic_phrases import join_devices, list_traffic
from viz import Edge, Figure, Group, Node

_KINDS = ("data", "control")
BADGES = 3  # devices of a type from which on their nodes have badges: their colours are hard to tell apart
_CONTROL_LIMIT = 12  # control edges drawn; more would hide the data
_CLEAR = 8  # lines of copies between devices of one box each: of more the labels are brief
BRIEF = 20  # boxes: where so few are wanted, for a page with little room, figures have few words
_ROUTED = 160  # lines: more of them take long to route, and Graphviz lays the figure out in ranks


def placement_figure(placed: Placed, limit: int = 40) -> Figure:
    """Return the device graph of one program in at most `limit` boxes, or one box a device where these are more.

    Every copy between devices is in the `count` of one edge of kind "copy". Where several boxes read one copy, a node
    of kind "copy" stands for it on their device. Of many devices, those alike are drawn as one. Of a refused
    placement, the nodes that could not be placed lie outside all devices. Devices stand in rows, in their order, unless
    there are too many lines to route around all boxes.
    """
    return arrange_in_rows(draw_boxes(placed, figure_boxes(placed, limit)))


def arrange_in_rows(figure: Figure) -> Figure:
    """Return a figure in rows of devices, in their order, or as it is where it has too many lines to route."""
    return replace(figure, arrangement="rows") if len(figure.edges) <= _ROUTED else figure


def draw_boxes(placed: Placed, alike: Alike) -> Figure:
    """Return the figure of boxes with each copy between them."""
    placement = placed.placement
    made, box_of = alike.boxes, alike.box_of
    drawn = alike.drawn
    found = box_edges(placement, placed.copies, box_of, drawn, alike.stands_for)
    collapsed = len(drawn) > len(made)
    data = drop_implied_edges(found) if collapsed else found.data
    back = _find_closing(found, data)
    control = _legible_control(found, data)
    if collapsed:
        control = _drop_closing(control, {*data, *(list_copied_ends(found) - back)})
    copy_nodes, copy_edges = _draw_copies(found, made, back, is_brief=is_crowded(alike, len(found.transfers)))
    hidden = (len(found.data) - len(data), len(found.control) - len(control))
    return Figure(
        title=write_message(placed),
        caption=write_caption(placed, alike, hidden, list_fed_and_fetched(placed)),
        groups=draw_devices(placed, alike),
        nodes=(*draw_nodes(placed, alike), *copy_nodes),
        edges=(
            *copy_edges,
            *(Edge(str(one), str(other), "data", "", count) for (one, other), count in data.items()),
            *(Edge(str(one), str(other), "control", "", count) for (one, other), count in control.items()),
        ),
        description=describe_placement(placed),
    )


def draw_devices(placed: Placed, alike: Alike) -> tuple[Group, ...]:
    """Return the groups of the devices that have boxes."""
    numbered = number_devices(placed.placement)
    tasks = Counter(_name_task(placed.placement, names) for names in alike.devices.values())
    groups = [
        device_group(placed, alike.devices[name], i, tasks[_name_task(placed.placement, alike.devices[name])] > 1)
        for i, name in numbered
        if name in alike.devices
    ]
    kinds = Counter(group.kind for group in groups)
    return tuple(
        replace(group, badge=_write_badge(placed, alike.devices[group.id])) if kinds[group.kind] >= BADGES else group
        for group in groups
    )


def _write_badge(placed: Placed, names: tuple[str, ...]) -> str:
    """Return the letter of a device's type with its number, or the first and the last of several: "G0", "G1–7".

    Of several tasks it has the task, too, by as few letters as tell its job from others: "w1 G0".
    """
    specs = [placed.placement.devices.by_name[name].spec for name in (names[0], names[-1])]
    task = f"{_shorten_job(placed, specs[0].job)}{specs[0].task} " if _name_task(placed.placement, names) else ""
    return f"{task}{(specs[0].type or ' ')[0]}{'–'.join(dict.fromkeys(str(spec.id) for spec in specs))}"


def _shorten_job(placed: Placed, job: str | None) -> str:
    """Return the first letters of a job's name, as many as no other job begins with, all of them if there is none."""
    name, others = job or "", {device.spec.job or "" for device in placed.placement.devices} - {job or ""}
    starts = (name[:length] for length in range(1, len(name)))
    return next((start for start in starts if not any(other.startswith(start) for other in others)), name)


def draw_nodes(placed: Placed, alike: Alike) -> tuple[Node, ...]:
    """Return the nodes of all boxes, whose ids are their numbers."""
    memory = MemoryTypes(placed.placement.placed)
    members: list[list[int]] = [[] for _ in alike.boxes]
    for node, number in alike.box_of.items():
        members[number].append(node)
    return tuple(box_node(placed.placement, memory, str(i), box, members[i]) for i, box in enumerate(alike.boxes))


def drop_implied_edges(found: BoxEdges) -> dict[Ends, int]:
    """Return the data edges that no longer path implies: between collapsed scopes almost any pair has an edge."""
    return without_implied(found.data, list_copied_ends(found) | found.data.keys())


def _legible_control(found: BoxEdges, data: dict[Ends, int]) -> dict[Ends, int]:
    """Return the control edges to draw, none where there are many even without those that longer paths imply."""
    if len(found.control) <= _CONTROL_LIMIT:
        return found.control
    needed = without_implied(found.control, list_copied_ends(found) | data.keys() | found.control.keys())
    return needed if len(needed) <= _CONTROL_LIMIT else {}


def list_copied_ends(found: BoxEdges) -> set[Ends]:
    """Return the boxes that copies leave, with those that they reach."""
    return {(one.source, target) for one in found.transfers for target in one.targets}


def _find_closing(found: BoxEdges, data: dict[Ends, int]) -> set[Ends]:
    """Return the ends of copies that would close a cycle of boxes: they are drawn from and to whole devices."""
    copied = sorted(list_copied_ends(found))
    if not has_cycle([*data, *copied]):
        return set()
    return set(copied) - _drop_closing(dict.fromkeys(copied, 1), set(data)).keys()


def _drop_closing(edges: dict[Ends, int], drawn: set[Ends]) -> dict[Ends, int]:
    """Return the edges without those that close a cycle with what is `drawn` and with the edges before them."""
    kept: dict[Ends, int] = {}
    for ends, count in edges.items():
        if not has_cycle([*drawn, *kept, ends]):
            kept[ends] = count
    return kept


def _draw_copies(found: BoxEdges, made: list[Box], back: set[Ends], is_brief: bool) -> tuple[list[Node], list[Edge]]:
    """Return the edges of copies, and a node where several boxes read one; those `back` are drawn between devices.

    Where it `is_brief`, of tensors that are alike only the number is told.
    """
    nodes: list[Node] = []
    edges: list[Edge] = []
    for transfer in found.transfers:
        source, count = str(transfer.source), len(transfer.copies)
        what, size = what_is_copied(transfer.copies, is_brief=is_brief)
        closes = any((transfer.source, target) in back for target in transfer.targets)
        if len(transfer.targets) == 1:
            label = f"{what} · {size}"
            edges.append(Edge(source, str(transfer.targets[0]), "copy", label, count, closes, closes))
            continue
        key = f"copy {len(nodes) + 1}"
        nodes.append(Node(key, what, size, made[transfer.targets[0]].device, "copy"))
        edges.append(Edge(source, key, "copy", "", count, from_group=closes))
        edges += [Edge(key, str(target)) for target in transfer.targets]
    return nodes, edges


def is_crowded(alike: Alike, copies: int) -> bool:
    """Return whether so many lines of copies join devices, of which each is one box, that their labels are brief."""
    return len(alike.boxes) == len(alike.devices) and copies > _CLEAR


def what_is_copied(copies: tuple[Copy, ...], noun: str = "tensor", is_brief: bool = False) -> tuple[str, str]:
    """Return what is copied, and its size; `noun` counts tensors that are not alike, or several where it `is_brief`."""
    total = quantities.format_total_bytes([copy.size for copy in copies])
    kinds = Counter(f"{copy.dtype} {quantities.format_shape(copy.shape)}" for copy in copies)
    if len(kinds) > 1 or (is_brief and len(copies) > 1):
        return quantities.format_count(len(copies), noun), total
    kind = next(iter(kinds))
    return (f"{len(copies)} × {kind}" if len(copies) > 1 else kind), total


def number_devices(placement: Placement) -> list[tuple[int, str]]:
    """Return the devices, numbered within their type."""
    seen: Counter[str] = Counter()
    numbered = []
    for device in placement.devices:
        numbered.append((seen[device.type], device.name))
        seen[device.type] += 1
    return numbered


def list_fed_and_fetched(placed: Placed) -> list[str]:
    """Return how many copies of a step begin or end outside of the graph, [] if none do."""
    count = sum(copy.producer < 0 or not copy.consumers for copy in placed.step_copies)
    return [f"{quantities.format_count(count, 'copy')} of what is fed or fetched"] if count else []


def write_caption(placed: Placed, alike: Alike, hidden: tuple[int, int], undrawn: Sequence[str] = ()) -> str:
    """Return which program it is, what the figure leaves out, and whether TensorFlow agrees.

    `hidden` data and control edges are not drawn, nor what `undrawn` names.
    """
    placement, drawn = placed.placement, len(alike.boxes)
    count = len(placement.decisions)
    if placement.refusal is not None:
        error = "" if placement.refusal.ends else f": {placement.refusal.message.splitlines()[0]}"
        said = f"{placement.refusal.code}{error}"
        placed_before = f"{quantities.format_count(count, 'node')} placed before that" if count else ""
        return " · ".join(filter(None, (said, placed_before, _tell_refusal_agreed(placed))))
    called = f" called on {placement.default.short}" if placement.default else ""
    parts = [
        f"{placed.title}{called}",
        *list_traffic(placed.traffic),
        quantities.format_count(count, "node")
        + (f" in {quantities.format_count(drawn, 'box')}" if drawn < count else ""),
    ]
    used = {device for family in alike.devices.values() for device in family}
    if idle := [device.name for device in placement.devices if device.name not in used]:
        parts.append(f"nothing runs on {join_devices(placement.devices, idle)}")
    left_out = [
        quantities.format_count(count, f"{kind} edge") for count, kind in zip(hidden, _KINDS, strict=True) if count
    ]
    left_out += undrawn
    if unread := len(placement.decisions.keys() - alike.box_of.keys()):
        left_out.append(f"{quantities.format_count(unread, 'op')} without tensors")
    if left_out:
        parts.append(f"not drawn: {', '.join(left_out)}")
    if placement.program.given_shapes or placement.program.is_sized_by_values:
        parts.append("sizes of the first call")
    if placed.agreement is not None and placed.agreement.holds:
        parts.append(f"TensorFlow agrees: {placed.agreement}")
    elif placed.agreement is not None:
        parts.append(f"TensorFlow differs: {placed.agreement} the same")
    return " · ".join(parts)


def _tell_refusal_agreed(placed: Placed) -> str:
    """Return whether TensorFlow refused the graph, too, "" where it was not asked."""
    if placed.agreement is None or placed.placement.program.pins:
        return ""
    return "as predicted" if placed.agreement.holds else "TensorFlow's own log differs"


def device_group(placed: Placed, names: tuple[str, ...], index: int, is_framed: bool = True) -> Group:
    """Return the group of a device by its full name, or of several that are drawn as one.

    With `is_framed` it is drawn in the box of its task, where there are several; else its title has the task.
    """
    placement = placed.placement
    device = placement.devices.by_name[names[0]]
    counts = Counter(decision.device for decision in placement.decisions.values() if decision.device in names)
    frame = _name_task(placement, names) if is_framed else ""
    ops = quantities.format_count(counts.total(), "op")
    ends = [placement.devices.by_name[name] for name in dict.fromkeys((names[0], names[-1]))]
    is_one = bool(_name_task(placement, names))  # task, so what it is called need be said once at most
    title = " … ".join(f"{end.type}:{end.spec.id}" if is_one and (frame or i) else end.short
                       for i, end in enumerate(ends))  # fmt: skip
    if len(names) > 1:
        each = quantities.format_count(counts[names[0]], "op")
        ops = f"{len(names)} devices alike, {f'{each} each' if len(set(counts.values())) == 1 else f'{ops} in total'}"
    return Group(names[0], title, ops, device.type, index, frame)


def _name_task(placement: Placement, names: tuple[str, ...]) -> str:
    """Return the task that has the devices, "" where they are of several, or where there is only one task."""
    of = {device.name: (device.spec.job, device.spec.task) for device in placement.devices}
    own = {of[name] for name in names if name in of}
    if len(set(of.values())) < 2 or len(own) != 1:
        return ""
    ((job, task),) = own
    return f"task {task} of job {job}"


def box_node(placement: Placement, memory: MemoryTypes, key: str, box: Box, members: list[int]) -> Node:
    """Return the node of a box; `members` are its nodes with those drawn with them."""
    own = [node for node in members if placement.device(node) == box.device]  # without those of devices alike
    on_gpu = bool(box.device) and placement.devices.by_name[box.device].type != "CPU"
    on_host = on_gpu and box.kind == "op" and all(_stays_on_host(placement, memory, node) for node in box.nodes)
    return Node(
        key,
        box.label,
        box.detail,
        box.device or None,
        box.kind,
        count=len(own) if box.kind == "part" else len(box.nodes),
        requested=format_ungranted(placement, box.nodes, members)
        if box.device
        else format_required(placement, box.nodes[0]),
        host_memory=on_host,
        tooltip=placement.notes(box.nodes[0]).at if len(box.nodes) == 1 else "",
    )


def _stays_on_host(placement: Placement, memory: MemoryTypes, node: int) -> bool:
    """Return whether all outputs of a node are in host memory."""
    types = placement.graph.out_types[node]
    sized = [
        host for dtype, host in zip(types, memory.of(node)[1], strict=False) if dtypes.data_type_size(dtype) is not None
    ]
    return bool(sized) and all(sized)
