"""Draw a placement with what differs from another one marked: moved and new nodes, new copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from simplace.changes.placement_changes import ProgramChanges
from simplace.partition.transfers import between_devices
from simplace.views.figures.alike_devices import Alike, figure_boxes
from simplace.views.figures.captions import describe_placement
from simplace.views.figures.overview_figure import overview_boxes, overview_figure
from simplace.views.figures.placement_figure import placement_figure
from simplace.views.text import quantities
from simplace.views.text.tables import shorten_device
from viz import Edge, Figure, Group, Node


def change_figure(change: ProgramChanges, limit: int = 40) -> Figure:
    """Return the overview after the change, its boxes marked by how many nodes are new or moved, and from where."""
    boxes = overview_boxes(change.after, limit)
    return _mark_figure(change, overview_figure(change.after, limit), boxes)


def detailed_change_figure(change: ProgramChanges, limit: int = 40) -> Figure:
    """Return the device graph after the change, with moved nodes marked by their old device, and new nodes."""
    boxes = figure_boxes(change.after, limit)
    return _mark_figure(change, placement_figure(change.after, limit), boxes)


def _mark_figure(change: ProgramChanges, figure: Figure, alike: Alike) -> Figure:
    """Return a figure of the placement after a change with its boxes marked; `alike` are its boxes."""
    placement = change.after.placement
    members: list[list[int]] = [[] for _ in alike.boxes]
    for node, number in alike.box_of.items():
        members[number].append(node)
    origins = {move.after: shorten_device(change.before.placement, move.source) for move in change.moves}
    new = {placement.graph.ids[name] for name in change.only_after}
    marks = {
        str(number): _describe_change(members[number], alike.boxes[number].nodes, origins, new)
        for number in range(len(members))
    }
    return replace(
        figure,
        title=f"{change.title}: what changed",
        caption=f"{_count_changes(change)} · {figure.caption}",
        nodes=tuple(_mark_node(node, marks.get(node.id, "")) for node in figure.nodes),
        description=f"{describe_placement(change.after, 'The second placement')} {_count_changes(change)}.",
    )


def side_by_side(change: ProgramChanges, limit: int = 40) -> Figure:
    """Return both overviews in one figure, what changed marked in the second; each may have half of the boxes."""
    before = overview_figure(change.before, max(limit // 2, 1))
    after = change_figure(change, max(limit // 2, 1))
    return Figure(
        title=f"{change.title}: before and after",
        caption=_count_changes(change),
        groups=(*_relabel_groups("before", before), *_relabel_groups("after", after)),
        nodes=(*_relabel_nodes("before", before), *_relabel_nodes("after", after)),
        edges=(*_relabel_edges("before", before), *_relabel_edges("after", after)),
        direction="down",
        arrangement="rows",
        description=f"{describe_placement(change.before, 'The first placement')} {after.description}",
    )


def _relabel_groups(when: str, figure: Figure) -> list[Group]:
    return [
        replace(group, id=f"{when} {group.id}", frame=f"{when}: {group.frame}" if group.frame else when)
        for group in figure.groups
    ]


def _relabel_nodes(when: str, figure: Figure) -> list[Node]:
    return [replace(node, id=f"{when} {node.id}", group=node.group and f"{when} {node.group}") for node in figure.nodes]


def _relabel_edges(when: str, figure: Figure) -> list[Edge]:
    return [replace(edge, source=f"{when} {edge.source}", target=f"{when} {edge.target}") for edge in figure.edges]


def _mark_node(node: Node, mark: str) -> Node:
    return replace(node, changed=mark) if mark else node


def _describe_change(members: list[int], own: Sequence[int], origins: dict[int, str], new: set[int]) -> str:
    """Return where the nodes of a box come from, with numbers where not all of them do.

    For a box of one node that node alone counts, whatever is drawn with it.
    """
    nodes = own if len(own) == 1 else members
    moved = Counter(f"from {origins[node]}" for node in nodes if node in origins)
    moved["new"] = sum(1 for node in nodes if node in new)
    return ", ".join(
        what if count == len(nodes) else f"{count} {what}" for what, count in sorted(moved.items()) if count
    )


def _count_changes(change: ProgramChanges) -> str:
    parts = [f"{len(change.moves):,} of {quantities.format_count(change.compared, 'node')} moved"]
    for names, word in ((change.only_after, "new"), (change.only_before, "removed")):
        parts += [f"{len(names):,} {word}"] if names else []
    lost, gained = between_devices(change.copies_lost), between_devices(change.copies_gained)
    for copies, word in ((gained, "gained"), (lost, "lost")):
        if copies:
            size = quantities.format_total_bytes([copy.size for copy in copies])
            parts.append(f"{quantities.format_count(len(copies), 'copy')} {word} ({size})")
    return ", ".join(parts)


FIGURES: Mapping[str, Callable[[ProgramChanges, int], Figure]] = {
    "changes": change_figure,
    "detail": detailed_change_figure,
    "side-by-side": side_by_side,
}
