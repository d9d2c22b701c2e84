"""Draw the colocation groups of a placed graph: their nodes, the colocation edges, the member that decides."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from simplace.devices.device_ranges import fold_names
from simplace.explain import reasons as why
from simplace.explain.sentences import DECIDED_BY
from simplace.graph.op_kinds import VARIABLE_HANDLE, VARIABLES, is_arg
from simplace.placement.placement import Placement
from simplace.result import Placed
from simplace.views.figures.alike_devices import figure_boxes
from simplace.views.figures.captions import describe_placement
from simplace.views.figures.granted_requests import format_required
from simplace.views.figures.overview_title import write_message
from simplace.views.figures.placement_figure import arrange_in_rows, draw_devices, draw_nodes, number_devices
from simplace.views.text import quantities
from simplace.views.text.tables import shorten_device
from viz import Edge, Figure, Group, Node
from viz.figure import NO_DEVICE, NodeKind
from viz.shortening import count_rest, fit, fit_all

_WIDE = 28  # characters of a box
_LEADER = 22  # characters of the name of the member that decides
_PAIR = 2  # members of a group with one colocation edge
_Tie = tuple[int, int, str]  # the first nodes of two parts, and the kind of the colocation edge between them


@dataclass(frozen=True, slots=True)
class _Family:
    """Record of groups with the same ops, by root; `parts` are the first one's members, by how they are drawn."""

    roots: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...]


def colocation_figure(placed: Placed, limit: int = 40) -> Figure:
    """Return the figure of the groups of two nodes or more, the largest first, in at most `limit` boxes.

    Members of one op are drawn as one box where they are several, groups of the same ops on the same device as one.
    Those of one op share it even if they request different devices where the largest group takes more boxes, then all
    members with the same colocation edges. Without any group, the figure has the devices with their ops, each of which
    is placed for itself.
    """
    placement = placed.placement
    families = _merge_like_groups(placement)
    if not families:
        return _draw_alone(placed, limit)
    shown = _choose_largest(placement, families, limit)
    kinds = {kind for family in shown for _, _, kind in _find_ties(placement, family)}
    groups, nodes, edges = [], [], []
    for number, family in enumerate(shown):
        groups.append(_draw_group(placement, family, number))
        nodes += _draw_nodes(placement, family, str(number))
        edges += _draw_edges(placement, family, are_labelled=len(kinds) > 1)
    figure = Figure(
        title=_write_title(placed, families, kinds),
        caption=_write_caption(placed, families, shown),
        groups=tuple(groups),
        nodes=tuple(nodes),
        edges=tuple(edges),
        description=describe_placement(placed, "Colocation groups"),
    )
    return arrange_in_rows(figure)


def _draw_alone(placed: Placed, limit: int) -> Figure:
    """Return the figure of a graph without groups."""
    alike = figure_boxes(placed, limit)
    return Figure(
        title="No op must share a device with another",
        caption=f"{placed.title} · {quantities.format_count(len(placed.placement.decisions), 'op')}, each for itself",
        groups=draw_devices(placed, alike),
        nodes=draw_nodes(placed, alike),
        description=describe_placement(placed, "Colocation groups"),
        arrangement="rows",
    )


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
    return sorted(families, key=lambda family: (-sizes[family.roots], -len(family.roots), family.roots))


def _split_members(placement: Placement, root: int) -> tuple[tuple[int, ...], ...]:
    parts: dict[tuple[str, str], list[int]] = {}
    for node in placement.members[root]:
        parts.setdefault((placement.graph.ops[node], placement.graph.requested[node]), []).append(node)
    return tuple(tuple(nodes) for nodes in parts.values())


def _choose_largest(placement: Placement, families: list[_Family], limit: int) -> list[_Family]:
    for of_one_op in (True, False):
        if len(families[0].parts) > limit:
            families = [_join_tied_alike(placement, family, of_one_op) for family in families]
    shown: list[_Family] = []
    boxes = 0
    for family in families:
        if shown and boxes + len(family.parts) > limit:
            continue
        shown.append(family)
        boxes += len(family.parts)
    return shown


def _join_tied_alike(placement: Placement, family: _Family, of_one_op: bool) -> _Family:
    """Return a family whose parts that are tied to the same others, in the same ways, are one: of one op, or of any."""
    ties: dict[int, set[tuple[int, str]]] = {part[0]: set() for part in family.parts}
    for one, other, kind in _find_ties(placement, family):
        ties[one].add((other, kind))
        ties[other].add((one, kind))
    joined: dict[tuple[object, ...], tuple[int, ...]] = {}
    for part in family.parts:
        key = (placement.graph.ops[part[0]] if of_one_op else "", frozenset(ties[part[0]]))
        joined[key] = (*joined.get(key, ()), *part)
    return _Family(family.roots, tuple(joined.values()))


def _find_ties(placement: Placement, family: _Family) -> list[_Tie]:
    """Return the colocation edges between the parts of a family, by the first nodes of these: each kind once."""
    part_of = {node: part[0] for part in family.parts for node in part}
    found: dict[_Tie, None] = {}
    colocation_edges = {join for node in part_of for join in placement.joins_at.get(node, ())}
    for join in sorted(colocation_edges, key=lambda one: (one.first, one.second, one.kind.value)):
        one, other = part_of.get(join.first, -1), part_of.get(join.second, -1)
        if min(one, other) >= 0 and one != other:
            found[one, other, join.kind.value] = None
    return list(found)


def _write_title(placed: Placed, families: list[_Family], kinds: set[str]) -> str:
    """Return how many groups there are, and how large the first one is; by what, where it is the same in all."""
    if placed.placement.refusal is not None:
        return write_message(placed)
    return f"{_count_groups(placed.placement, families)}{_tell_ties(placed.placement, families, kinds)}"


def _count_groups(placement: Placement, families: list[_Family]) -> str:
    """Return how many groups there are, how large the first one is, and where it is."""
    root = families[0].roots[0]
    device = shorten_device(placement, placement.device(root))
    largest = quantities.format_count(len(placement.members[root]), "op")
    total = sum(len(family.roots) for family in families)
    if total == 1:
        return f"{largest} must share a device{f', {device}' if device else ''}"
    return f"{total:,} colocation groups, the largest of {largest}{f' on {device}' if device else ''}"


def _tell_ties(placement: Placement, families: list[_Family], kinds: set[str]) -> str:
    """Return by what the members of the groups are tied, "" where it is by several kinds of edges."""
    if len(kinds) != 1:
        return ""
    (kind,) = kinds
    roots = [root for family in families for root in family.roots]
    if any(len(placement.members[root]) > _PAIR for root in roots):
        return f", tied by {kind}s"
    return f", tied by a {kind}{' each' if len(roots) > 1 else ''}"


def _write_caption(placed: Placed, families: list[_Family], shown: list[_Family]) -> str:
    left = sum(len(family.roots) for family in families) - sum(len(family.roots) for family in shown)
    refused = _count_groups(placed.placement, families) if placed.placement.refusal is not None else ""
    unseen = f"{quantities.format_count(left, 'smaller group')} not drawn" if left else ""
    return " · ".join(filter(None, (placed.title, refused, unseen)))


def _draw_group(placement: Placement, family: _Family, number: int) -> Group:
    root = family.roots[0]
    device, members = placement.device(root), placement.members[root]
    index = {name: i for i, name in number_devices(placement)}.get(device, 0)
    kind = placement.devices.by_name[device].type if device else NO_DEVICE
    times = f"{len(family.roots)} groups of " if len(family.roots) > 1 else ""
    title = f"{shorten_device(placement, device) or 'not placed'}: {times}{quantities.format_count(len(members), 'op')}"
    return Group(str(number), title, _decided_by(placement, members), kind, index)


def _decided_by(placement: Placement, members: list[int]) -> str:
    """Return the member that decides for the group, and by what; "" where none does."""
    for node in members:
        if node not in placement.decisions:
            continue
        reason = why.find_reason(placement, node)
        if isinstance(reason, why.Colocated):
            return f"decided by {_name_leader(placement, reason.leader)}: {DECIDED_BY[reason.how]}"
        if isinstance(reason, why.Requested) and placement.graph.requested[node]:
            return f"decided by {_name_leader(placement, node)}: {DECIDED_BY['request']}"
    return ""


def _name_leader(placement: Placement, node: int) -> str:
    return fit(_name_node(placement, node), _LEADER)


def _name_node(placement: Placement, node: int) -> str:
    return placement.notes(node).variable or placement.graph.names[node]


def _draw_nodes(placement: Placement, family: _Family, group: str) -> list[Node]:
    """Return a box for each part of a family; long names are shortened from what they have in common."""
    graph = placement.graph
    details = fit_all([_write_detail(placement, part) for part in family.parts], _WIDE)
    nodes = []
    for part, detail in zip(family.parts, details, strict=True):
        asked = dict.fromkeys(graph.requested[node].rpartition("/device:")[2] for node in part)
        requests = f"requests {', '.join(fold_names(filter(None, asked)))}" if any(asked) else ""
        kind = _find_kind(placement, part[0])
        ungranted = "" if placement.device(part[0]) else format_required(placement, part[0])
        nodes.append(
            Node(
                str(part[0]), _write_label(placement, part), detail or ("" if ungranted else requests), group, kind,
                requested=ungranted, tooltip=requests,
            )
        )  # fmt: skip
    return nodes


def _write_label(placement: Placement, part: tuple[int, ...]) -> str:
    ops = Counter(placement.graph.ops[node] for node in part)
    if len(part) == 1 and _is_handle(*ops):
        return _name_node(placement, part[0])
    said = [f"{op} ×{count}" if count > 1 else op for op, count in ops.items()]
    return count_rest(", ".join(said), _WIDE)


def _write_detail(placement: Placement, part: tuple[int, ...]) -> str:
    """Return the type of a variable, the name of another node, "" for several."""
    op = placement.graph.ops[part[0]]
    return "" if len(part) > 1 else op if _is_handle(op) else placement.graph.names[part[0]]


def _find_kind(placement: Placement, node: int) -> NodeKind:
    op = placement.graph.ops[node]
    if op in VARIABLES or op == VARIABLE_HANDLE or placement.notes(node).variable:
        return "variable"
    return "argument" if is_arg(op) else "op"


def _is_handle(op: str) -> bool:
    return is_arg(op) or op == VARIABLE_HANDLE or op in VARIABLES


def _draw_edges(placement: Placement, family: _Family, *, are_labelled: bool) -> list[Edge]:
    """Return the colocation edges of the members, labelled with their kind where a figure has several."""
    ties = _find_ties(placement, family)
    return [Edge(str(one), str(other), "tie", kind if are_labelled else "") for one, other, kind in ties]
