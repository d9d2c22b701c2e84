"""Draw a placement as an annotated device graph: what to draw; `viz` knows how."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from simplace.devices import DeviceName
from simplace.graph import dtypes
from simplace.partition.transfers import MemoryTypes
from simplace.placement.placement import Placement
from simplace.placement.reasons import granted
from simplace.result import Placed
from simplace.views import quantities
from simplace.views.boxes import Box, boxes
from viz import Edge, EdgeKind, Figure, Group, Node

_CONTROL_LIMIT = 12  # control edges drawn; more would hide the data


@dataclass(slots=True)
class _Bundle:
    """Collect what travels between two boxes."""

    tensors: list[tuple[str, int | None]] = field(default_factory=list)  # (what it is, bytes)
    data: int = 0
    control: int = 0


def placement_figure(placed: Placed, limit: int = 40) -> Figure:
    """Describe the device graph of one program in at most about `limit` boxes."""
    placement = placed.placement
    made, box_of = boxes(placement, limit)
    edges, hidden = _edges(placed, made, box_of)
    memory = MemoryTypes(placement)
    nodes = tuple(_node(placement, memory, str(i), box) for i, box in enumerate(made))
    used = {box.device for box in made}
    return Figure(
        title=_title(placed),
        caption=_caption(placed, len(made), hidden, used),
        groups=tuple(_group(placed, name, i) for i, name in _devices(placement) if name in used),
        nodes=nodes,
        edges=edges,
    )


def _devices(placement: Placement) -> list[tuple[int, str]]:
    """Number the devices within their type."""
    seen: Counter[str] = Counter()
    numbered = []
    for device in placement.devices:
        numbered.append((seen[device.type], device.name))
        seen[device.type] += 1
    return numbered


def _title(placed: Placed) -> str:
    default = placed.placement.default
    return f"{placed.name} called on {default.short}" if default else placed.name


def _caption(placed: Placed, drawn: int, hidden: int, used: set[str]) -> str:
    placement = placed.placement
    count = len(placement.decisions)
    parts = [quantities.plural(count, "node") + (f" in {quantities.plural(drawn, 'box')}" if drawn < count else "")]
    idle = [device.short for device in placement.devices if device.name not in used]
    if idle:
        parts.append(f"nothing runs on {', '.join(idle)}")
    if hidden:
        parts.append(f"{quantities.plural(hidden, 'control edge')} not drawn")
    if placement.refusal is not None:
        parts.append("TensorFlow refuses this graph")
    if placed.agreement is not None and placed.agreement.holds:
        parts.append(f"TensorFlow agrees: {placed.agreement}")
    elif placed.agreement is not None:
        parts.append(f"TensorFlow differs: {placed.agreement} the same")
    return " · ".join(parts)


def _group(placed: Placed, name: str, index: int) -> Group:
    placement = placed.placement
    device = placement.devices.by_name[name]
    count = sum(1 for decision in placement.decisions.values() if decision.device == name)
    return Group(name, device.short, quantities.plural(count, "op"), device.type, index)


def _node(placement: Placement, memory: MemoryTypes, key: str, box: Box) -> Node:
    first = box.nodes[0]
    asked = {_asked(placement, node) for node in box.nodes if not _was_granted(placement, node)}
    on_gpu = placement.devices.by_name[box.device].type != "CPU"
    return Node(
        key,
        box.label,
        box.detail,
        box.device,
        box.kind,
        count=len(box.nodes),
        asked=", ".join(sorted(asked)[:2]) + (", …" if len(asked) > 2 else ""),
        host_memory=on_gpu and box.kind == "op" and _keeps_on_host(placement, memory, first),
        tooltip=placement.notes(first).at if len(box.nodes) == 1 else "",
    )


def _was_granted(placement: Placement, node: int) -> bool:
    written = not placement.graph.origins[node].made_by and not placement.graph.assigned[node]
    return not written or granted(placement, node)


def _asked(placement: Placement, node: int) -> str:
    spec = DeviceName.parse(placement.graph.requested[node])
    return (
        placement.graph.requested[node] if spec is None else str(spec._replace(job=None, replica=None, task=None))[8:]
    )


def _keeps_on_host(placement: Placement, memory: MemoryTypes, node: int) -> bool:
    types = placement.graph.out_types[node]
    return any(host and dtypes.size(types[slot]) is not None for slot, host in enumerate(memory.of(node)[1]))


def _edges(placed: Placed, made: list[Box], box_of: dict[int, int]) -> tuple[tuple[Edge, ...], int]:
    bundles = _bundles(placed, box_of)
    edges: list[Edge] = []
    control: list[Edge] = []
    for (source, target), bundle in sorted(bundles.items()):
        ends = (str(source), str(target))
        if bundle.tensors:
            edges.append(Edge(*ends, "copy", _copy_label(bundle), len(bundle.tensors)))
        elif bundle.data:
            kind: EdgeKind = "copy" if made[source].device != made[target].device else "data"
            edges.append(Edge(*ends, kind, "", bundle.data))
        elif bundle.control:
            control.append(Edge(*ends, "control", "", bundle.control))
    shown = control if len(control) <= _CONTROL_LIMIT else []
    return (*edges, *shown), len(control) - len(shown)


def _bundles(placed: Placed, box_of: dict[int, int]) -> dict[tuple[int, int], _Bundle]:
    graph = placed.placement.graph
    bundles: dict[tuple[int, int], _Bundle] = {}
    for source, slot, target in zip(graph.edge_src, graph.edge_src_slot, graph.edge_dst, strict=True):
        ends = (box_of.get(source), box_of.get(target))
        if ends[0] is None or ends[1] is None or ends[0] == ends[1]:
            continue
        bundle = bundles.setdefault((ends[0], ends[1]), _Bundle())
        if slot < 0:
            bundle.control += 1
        else:
            bundle.data += 1
    for copy in placed.copies:
        if copy.is_control or copy.source == copy.target:
            continue
        what = f"{copy.dtype} {quantities.shape(copy.shape)}"
        targets = dict.fromkeys(box_of[i] for i in copy.consumers if i in box_of)
        source_box = box_of.get(copy.producer)
        first = next((target for target in targets if (source_box, target) in bundles), None)
        if source_box is not None and first is not None:
            bundles[source_box, first].tensors.append((what, copy.size))  # one transfer serves all its consumers
    return bundles


def _copy_label(bundle: _Bundle) -> str:
    if len(bundle.tensors) == 1:
        what, size = bundle.tensors[0]
        return f"{what} · {quantities.size(size)}"
    return (
        f"{quantities.plural(len(bundle.tensors), 'tensor')} · {quantities.total([size for _, size in bundle.tensors])}"
    )
