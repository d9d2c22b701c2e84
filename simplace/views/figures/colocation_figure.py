"""Draw the colocation groups of a placed graph: their nodes, the colocation edges, the member that decides."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from simplace.explain import reasons as why
from simplace.explain.sentences import DECIDED_BY
from simplace.graph.op_kinds import VARIABLE_HANDLE, is_arg
from simplace.placement.placement import Placement
from simplace.result import Placed
from simplace.views.figures.captions import describe_placement
from simplace.views.figures.placement_figure import arrange_in_rows, number_devices
from simplace.views.text import quantities
from simplace.views.text.tables import shorten_device
from viz import Edge, Figure, Group, Node
from viz.figure import NodeKind


@dataclass(frozen=True, slots=True)
class _Family:
    """Record of groups with the same ops, by root; `parts` are the first one's members, by how they are drawn."""

    roots: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...]


def colocation_figure(placed: Placed, limit: int = 40) -> Figure:
    """Return the figure of the groups of two nodes or more, the largest first, in at most `limit` boxes.

    Members of one op are drawn as one box where they are several, groups of the same ops on the same device as one.
    """
    placement = placed.placement
    families = _merge_like_groups(placement)
    shown = _choose_largest(families, limit)
    groups, nodes, edges = [], [], []
    for number, family in enumerate(shown):
        groups.append(_draw_group(placement, family, number))
        nodes += [_draw_node(placement, part, str(number)) for part in family.parts]
        edges += _draw_edges(placement, family)
    figure = Figure(
        title=f"{placed.title}: colocation groups",
        caption=_write_caption(families, shown),
        groups=tuple(groups),
        nodes=tuple(nodes),
        edges=tuple(edges),
        description=describe_placement(placed, "Colocation groups"),
    )
    return arrange_in_rows(figure)


def _merge_like_groups(placement: Placement) -> list[_Family]:
    """Return the groups, those with the same ops and requests merged, the largest groups first."""
    found: dict[tuple[object, ...], list[int]] = {}
    for root, members in placement.members.items():
        if len(members) < 2:
            continue
        ops = Counter(placement.graph.ops[node] for node in members)
        requests = Counter(placement.graph.requested[node] for node in members)
        key = (placement.device(root), tuple(sorted(ops.items())), tuple(sorted(requests.items())))
        found.setdefault(key, []).append(root)
    families = [_Family(tuple(roots), _split_members(placement, roots[0])) for roots in found.values()]
    sizes = {family.roots: len(placement.members[family.roots[0]]) for family in families}
    return sorted(families, key=lambda family: (-sizes[family.roots] * len(family.roots), family.roots))


def _split_members(placement: Placement, root: int) -> tuple[tuple[int, ...], ...]:
    parts: dict[tuple[str, str], list[int]] = {}
    for node in placement.members[root]:
        parts.setdefault((placement.graph.ops[node], placement.graph.requested[node]), []).append(node)
    return tuple(tuple(nodes) for nodes in parts.values())


def _choose_largest(families: list[_Family], limit: int) -> list[_Family]:
    shown: list[_Family] = []
    boxes = 0
    for family in families:
        if shown and boxes + len(family.parts) > limit:
            continue
        shown.append(family)
        boxes += len(family.parts)
    return shown


def _write_caption(families: list[_Family], shown: list[_Family]) -> str:
    total = sum(len(family.roots) for family in families)
    if not total:
        return "no node is colocated with another"
    parts = [f"{quantities.format_count(total, 'group')} of two nodes or more"]
    drawn = sum(len(family.roots) for family in shown)
    return " · ".join(parts + ([f"{total - drawn:,} smaller ones are not drawn"] if drawn < total else []))


def _draw_group(placement: Placement, family: _Family, number: int) -> Group:
    root = family.roots[0]
    device, members = placement.device(root), placement.members[root]
    index = {name: i for i, name in number_devices(placement)}.get(device, 0)
    kind = placement.devices.by_name[device].type if device else ""
    times = f"{len(family.roots)} groups of " if len(family.roots) > 1 else ""
    title = (
        f"{shorten_device(placement, device) or 'not placed'}: {times}{quantities.format_count(len(members), 'node')}"
    )
    return Group(str(number), title, _decided_by(placement, members), kind, index)


def _decided_by(placement: Placement, members: list[int]) -> str:
    """Return the member that decides for the group, and by what; "" where none does."""
    for node in members:
        if node not in placement.decisions:
            continue
        reason = why.find_reason(placement, node)
        if isinstance(reason, why.Colocated):
            return f"decided by {_name_node(placement, reason.leader)}: {DECIDED_BY[reason.how]}"
        if isinstance(reason, why.Requested) and placement.graph.requested[node]:
            return f"decided by {_name_node(placement, node)}: {DECIDED_BY['request']}"
    return ""


def _name_node(placement: Placement, node: int) -> str:
    return placement.notes(node).variable or placement.graph.names[node]


def _draw_node(placement: Placement, part: tuple[int, ...], group: str) -> Node:
    graph, first = placement.graph, part[0]
    op, asked = graph.ops[first], graph.requested[first].rpartition("/device:")[2]
    is_handle = is_arg(op) or op == VARIABLE_HANDLE
    kind: NodeKind = "variable" if is_handle else "op"
    label = f"{op} ×{len(part)}" if len(part) > 1 else _name_node(placement, first) if is_handle else op
    detail = "" if len(part) > 1 else (op if is_handle else graph.names[first])
    requests = f"requests {asked}" if asked else ""
    return Node(str(first), label, detail or requests, group, kind, tooltip=requests)


def _draw_edges(placement: Placement, family: _Family) -> list[Edge]:
    """Return the colocation edges of the members: one for all of a kind between two boxes."""
    box_of = {node: str(part[0]) for part in family.parts for node in part}
    found: dict[tuple[str, str, str], None] = {}
    colocation_edges = {join for node in box_of for join in placement.joins_at.get(node, ())}
    for join in sorted(colocation_edges, key=lambda one: (one.first, one.second, one.kind.value)):
        one, other = box_of.get(join.first, ""), box_of.get(join.second, "")
        if one and other and one != other:
            found[one, other, join.kind.value] = None
    return [Edge(one, other, "tie", kind) for one, other, kind in found]
