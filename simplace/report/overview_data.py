"""Write the overview of a placement as columns for the page: the place, the part of a step and the layer of each node.

It is the overview that a figure has: one place a device, devices that are alike in one, the parts of a step its boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from simplace.placement.placement import Placement
from simplace.report.interning import Interner
from simplace.report.packed_sentences import FIRST
from simplace.result import Placed
from simplace.views.figures.boxes import BoxPaths
from simplace.views.figures.folding import LEFT_OUT
from simplace.views.figures.overview_figure import choose_overview_boxes
from simplace.views.figures.overview_title import write_message
from simplace.views.figures.placement_figure import device_group
from simplace.views.figures.step_parts import StepPart

NONE = -1  # stands for no place, and for no part: that of ops without tensors
_OTHER = "ops without tensors"


def overview_data(placed: Placed, numbers: Mapping[str, int], texts: Interner[str]) -> dict[str, Any]:
    """Return the overview: what it says, places in the order of devices, parts, and columns of nodes.

    "place" and "part" are numbers of places and parts, `NONE` for none; a graph of few ops has no parts. "layer" is a
    text. A place has several "devices" where they are alike.
    """
    placement = placed.placement
    drawn = BoxPaths.of(placement)
    graph, parts = drawn.graph, drawn.parts
    alike, is_few = choose_overview_boxes(placed)
    families = _list_families(placement, alike.devices, numbers)
    place_of = {name: i for i, family in enumerate(families) for name in family}
    nodes = range(FIRST, len(placement.graph))
    return {
        "message": "" if placement.refusal is not None else write_message(placed),
        "places": [_describe_place(placed, family, numbers) for family in families],
        "parts": [{"label": box.label, "detail": box.detail, "kind": box.kind} for box in alike.boxes if not is_few],
        "place": [place_of.get(placement.device(node), NONE) for node in nodes],
        "part": [NONE if is_few else alike.box_of.get(node, NONE) for node in nodes],
        "layer": [texts(_name_layer(parts, graph.home.get(node, LEFT_OUT))) for node in nodes],
    }


def _list_families(
    placement: Placement, drawn: Mapping[str, Iterable[str]], numbers: Mapping[str, int]
) -> list[list[str]]:
    """Return the devices that have nodes, alike ones together, in their order; a figure leaves those out that have
    nothing but ops without tensors."""
    families = [sorted(family, key=lambda name: numbers[name]) for first, family in drawn.items() if first]
    known = {name for family in families for name in family}
    families += [[name] for name in sorted({one.device for one in placement.decisions.values()} - known)]
    return sorted(families, key=lambda family: numbers[family[0]])


def _describe_place(placed: Placed, family: list[str], numbers: Mapping[str, int]) -> dict[str, Any]:
    group = device_group(placed, tuple(family), 0)
    label = f"{group.title}, {group.frame}" if group.frame else group.title
    return {"label": label, "detail": group.subtitle, "devices": [numbers[name] for name in family]}


def _name_layer(parts: Mapping[int, StepPart], home: int) -> str:
    """Return the layer of a node, or what else it is part of."""
    if home not in parts:
        return _OTHER
    part = parts[home]
    return part.name if part.kind == "layer" and part.name else " ".join(filter(None, (part.kind, part.name)))
