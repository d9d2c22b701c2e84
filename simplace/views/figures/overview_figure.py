"""Draw a placement as a person would: the parts of a step on each device, and what devices send each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from functools import lru_cache
from math import log2

from simplace.partition.traffic import CollectiveVolume
from simplace.partition.transfers import Copy
from simplace.result import Placed
from simplace.views.figures.acyclic_groups import Ends, has_cycle
from simplace.views.figures.alike_devices import Alike, count_fold, figure_boxes, fold_alike
from simplace.views.figures.box_edges import box_edges, without_implied
from simplace.views.figures.boxes import Box, BoxPaths, group_into_boxes
from simplace.views.figures.captions import describe_placement
from simplace.views.figures.copy_bundles import Bundle, bundle_copies, is_one_box, pick_heaviest, set_apart, weigh_ends
from simplace.views.figures.device_parts import MOST_BOXES
from simplace.views.figures.overview_title import write_message
from simplace.views.figures.part_boxes import make_part_boxes
from simplace.views.figures.placement_figure import (
    BRIEF,
    draw_boxes,
    draw_devices,
    draw_nodes,
    is_crowded,
    placement_figure,
    what_is_copied,
    write_caption,
)
from simplace.views.text.quantities import format_count
from simplace.views.text.traffic_phrases import format_volume, name_member
from viz import Edge, Figure, Node

_EACH = 3  # boxes for each device: where there are fewer, even two devices that are alike are drawn as one
_FEW = 16  # ops: so many are drawn one by one
MOST = 40  # boxes of an overview
_LARGEST = 30  # doublings from 1 B to the bytes that the widest line stands for


def overview_figure(placed: Placed, limit: int = MOST) -> Figure:
    """Return the overview of one program in at most `limit` boxes, or one box a device where these are more.

    A graph of few ops is drawn op by op, with each copy, any other by the parts of its step; of three devices or more
    that are alike, one is drawn. All copies between two devices are one edge then, with a head at each end that
    receives. A refused placement is drawn as by `placement_figure`.
    """
    if placed.placement.refusal is not None:
        return replace(placement_figure(placed, limit), arrangement="rows")
    alike, is_few = choose_overview_boxes(placed, limit)
    if is_few:
        return replace(draw_boxes(placed, alike), arrangement="rows")
    return _draw_parts(placed, alike, limit)


def overview_boxes(placed: Placed, limit: int = MOST) -> Alike:
    """Return the boxes of `overview_figure`."""
    if placed.placement.refusal is not None:
        return figure_boxes(placed, limit)
    return choose_overview_boxes(placed, limit)[0]


def choose_overview_boxes(placed: Placed, limit: int = MOST) -> tuple[Alike, bool]:
    """Return the boxes, and whether each is one op."""
    few = _fold_few(placed, min(limit, _FEW), count_fold(placed, limit, _EACH))
    return (_choose_part_boxes(placed, limit), False) if few is None else (few, True)


def _choose_part_boxes(placed: Placed, limit: int) -> Alike:
    """Return the parts of a step on each device, in at most `limit` boxes, or one box a device where these are more."""
    drawn, fold = BoxPaths.of(placed.placement), count_fold(placed, limit, _EACH)
    for room in range(MOST_BOXES, 0, -1):
        alike = _fold(placed, *_join_parts(drawn, room, limit <= BRIEF), fold)
        if len(alike.boxes) <= limit:
            break
    return alike


@lru_cache(maxsize=2 * MOST_BOXES)
def _join_parts(drawn: BoxPaths, room: int, is_brief: bool) -> tuple[list[Box], dict[int, int]]:
    """Return at most `room` boxes a device; those of the last placement are kept, since several sizes are tried."""
    groups = [one for parts in drawn.device_parts for one in parts.join(room)]
    return make_part_boxes(drawn.graph, drawn.parts, groups, is_brief=is_brief)


def _fold_few(placed: Placed, limit: int, fold: int) -> Alike | None:
    """Return a box an op, None where that makes more than `limit` boxes."""
    keepers = BoxPaths.of(placed.placement).graph.keepers
    devices = {placed.placement.device(node) for node in keepers}
    if len(keepers) > limit * max(len(devices) - 1, 1):
        return None
    found = _fold(placed, *group_into_boxes(placed.placement, len(keepers)), fold)
    return found if len(found.boxes) <= limit else None


def _fold(placed: Placed, made: list[Box], box_of: dict[int, int], fold: int) -> Alike:
    copied = frozenset((copy.source, copy.target) for copy in placed.crossing)
    return fold_alike(placed.placement, made, box_of, most=fold - 1, least=fold, copied=copied)


def _draw_parts(placed: Placed, alike: Alike, limit: int) -> Figure:
    found = box_edges(placed.placement, placed.copies, alike.box_of, alike.drawn, alike.stands_for)
    bundles = bundle_copies(placed, alike)
    count = len(placed.step_copies) - sum(len(one.there) + len(one.back) for one in bundles)
    undrawn = [f"{format_count(count, 'copy')} where nothing else runs"] if count else []
    local = {(a, b): count for (a, b), count in found.data.items() if _is_local(alike, a, b)}
    bars, arms = _draw_collectives(placed, alike)
    joined = {box for ends in local for box in ends} | {int(arm.source) for arm in arms}
    bundles, apart = set_apart(bundles, alike, joined)
    copies = _draw_bundles([*apart, *bundles], alike, set(local), limit <= BRIEF)
    seen = {(int(one.source), int(one.target)) for one in copies if not (one.from_group or one.to_group)}
    data = without_implied(local, set(local) | seen)  # a path is to be seen: an edge of whole devices is none
    return Figure(
        title=write_message(placed),
        caption=write_caption(placed, alike, (len(local) - len(data), sum(found.control.values())), undrawn),
        groups=draw_devices(placed, alike),
        nodes=(*draw_nodes(placed, alike), *bars),
        edges=(
            *copies,
            *(Edge(str(one), str(other)) for one, other in data),
            *arms,
        ),
        direction="page" if len(alike.devices) > 1 else "auto",
        description=describe_placement(placed, "Overview of the placement"),
        arrangement="rows",
    )


def _is_local(alike: Alike, one: int, other: int) -> bool:
    return alike.boxes[one].device == alike.boxes[other].device


def _draw_bundles(bundles: list[Bundle], alike: Alike, drawn: set[Ends], is_brief: bool) -> list[Edge]:
    """Return an edge a bundle: from and to a box where all copies leave and reach the same one, else the device.

    Nor does an edge join boxes where it would close a cycle with those `drawn`, or where copies go both ways.
    """
    edges = []
    is_brief = is_brief or is_crowded(alike, len(bundles))
    for bundle in bundles:
        sources, targets = weigh_ends(bundle.there, alike)
        ends = pick_heaviest(sources), pick_heaviest(targets)
        one, other = (bool(bundle.back) or not is_one_box(each) for each in (sources, targets))
        if not (one or other):
            one = other = has_cycle({*drawn, ends})
            drawn |= set() if one else {ends}
        copies = [*bundle.there, *bundle.back]
        share = _scale_width(sum(copy.size or 0 for copy in copies))
        label, back = (_describe_copies(some, is_brief) for some in (bundle.there, bundle.back))
        edges.append(Edge(str(ends[0]), str(ends[1]), "copy", label, len(copies), one, other, share, back))
    return edges


def _describe_copies(copies: list[Copy], is_brief: bool) -> str:
    return " · ".join(what_is_copied(tuple(copies), "copy", is_brief=is_brief)) if copies else ""


def _scale_width(size: int) -> float:
    """Return the width of a line between 0 and 1: as much wider for each doubling of the bytes, from 1 B to 1 GiB.

    >>> _scale_width(1), _scale_width(1 << 15), _scale_width(1 << 40)
    (0.0, 0.5, 1.0)
    """
    return round(min(log2(max(size, 1)) / _LARGEST, 1.0), 3)


def _draw_collectives(placed: Placed, alike: Alike) -> tuple[list[Node], list[Edge]]:
    """Return a bar a kind of collective, and its edges to the boxes that take part, one or more a device.

    Collectives that are made of copies are drawn as these.
    """
    bars: list[Node] = []
    arms: list[Edge] = []
    for volume in placed.traffic.collectives:
        if volume.is_copied:
            continue
        key = f"collective {len(bars) + 1}"
        size = f"{format_volume(volume.volume)} per {name_member(volume.devices)}"
        bars.append(Node(key, f"{volume.kind} ×{volume.volume.count:,}", size, None, "collective"))
        arms += [Edge(str(box), key, "collective") for box in _list_members(placed, alike, volume)]
    return bars, arms


def _list_members(placed: Placed, alike: Alike, volume: CollectiveVolume) -> list[int]:
    """Return the box of each drawn device that has most members of the collectives."""
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for one in placed.collectives:
        if (one.kind, one.devices) == (volume.kind, volume.devices) and not one.copies:
            for node in one.members:
                if node in alike.box_of:
                    box = alike.box_of[node]
                    found[alike.boxes[box].device][box] += 1
    return sorted(pick_heaviest(boxes) for boxes in found.values())
