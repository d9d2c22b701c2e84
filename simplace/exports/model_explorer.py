"""Write placed graphs as Model Explorer's JSON: one graph per program, and node data that colours nodes by device.

Values are strings, as its reader wants them; nodes that decided a device are links. Labels end in the device: colour
alone would not do, and Model Explorer hides all nodes whose label is just Const or ReadVariableOp. See
https://github.com/google-ai-edge/model-explorer/wiki/4.-API-Guide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from simplace.explain import reasons as why
from simplace.explain.sentences import state_reason
from simplace.exports.viewer_scopes import find_scopes
from simplace.graph import dtypes
from simplace.graph.node_def import Shape
from simplace.partition.shapes import TensorSizes
from simplace.placement.placement import Placement
from simplace.result import Placed

_COPY_COLOUR, _COLLECTIVE_COLOUR = "#b3261e", "#4a4a4a"
_MOST_MEMBERS = 50  # links of one node


def collect_graphs(target: str, programs: Sequence[Placed], colours: Mapping[str, str]) -> dict[str, Any]:
    """Return a graph collection; `colours` are "#rrggbb" by full device name."""
    ids = _graph_ids(programs)
    made = [_describe_graph(graph_id, placed, colours) for graph_id, placed in zip(ids, programs, strict=True)]
    return {"label": f"{target}, placed by simplace", "graphs": made}


def node_data(programs: Sequence[Placed], colours: Mapping[str, str]) -> dict[str, Any]:
    """Return the device of each node by graph, for `model-explorer graph.json --node_data_paths=FILE`.

    The values are text, so that a group shows how many of its nodes are on each device.
    """
    return {
        graph_id: {
            "name": "device by simplace",
            "results": {
                node.name: {
                    "value": _shorten_device(placed.placement, node.device),
                    "bgColor": _choose_colour(node.device, colours),
                }
                for node in placed.placement.nodes
            },
            "showExpandedSummaryOnGroupNode": True,
        }
        for graph_id, placed in zip(_graph_ids(programs), programs, strict=True)
    }


def _graph_ids(programs: Sequence[Placed]) -> list[str]:
    """Return a unique name for each program: several programs may share one."""
    seen: dict[str, int] = {}
    ids = []
    for placed in programs:
        seen[placed.title] = seen.get(placed.title, 0) + 1
        ids.append(placed.title if seen[placed.title] == 1 else f"{placed.title} ({seen[placed.title]})")
    return ids


def _describe_graph(graph_id: str, placed: Placed, colours: Mapping[str, str]) -> dict[str, Any]:
    placement = placed.placement
    sizes, scopes = TensorSizes(placement.placed), find_scopes(placement.graph)
    facts = {
        "devices": str(placement.devices),
        "soft placement": "on" if placement.soft_placement else "off",
        "called on": placement.default.short if placement.default else "",
    }
    return {
        "id": graph_id,
        "nodes": [_describe_node(placement, i, scopes[i], sizes, colours) for i in placement.graph.op_ids],
        "groupNodeAttributes": {"": {key: value for key, value in facts.items() if value}},
        "tasksData": {"edgeOverlaysDataListLeftPane": [_describe_overlay(placed)]},
    }


def _describe_node(
    placement: Placement, i: int, scope: str, sizes: TensorSizes, colours: Mapping[str, str]
) -> dict[str, Any]:
    graph, device = placement.graph, placement.device(i)
    label = graph.names[i].rpartition("/")[2]
    edges = [
        {
            "sourceNodeId": graph.names[graph.edge_src[e]],
            "sourceNodeOutputId": str(graph.edge_src_slot[e]),
            "targetNodeInputId": str(graph.edge_dst_slot[e]),
        }
        for e in graph.in_edges[i]
        if graph.edge_src[e] > 1
    ]
    outputs = [
        {
            "id": str(slot),
            "attrs": [{"key": "type", "value": f"{dtypes.format_dtype(t)} {_format_dims(sizes.shape(i, slot))}"}],
        }
        for slot, t in enumerate(graph.out_types[i])
    ]
    return {
        "id": graph.names[i],
        "label": f"{label or graph.names[i]} ({_shorten_device(placement, device)})",
        "namespace": scope,
        "attrs": _list_attrs(placement, i),
        "incomingEdges": edges,
        "outputsMetadata": outputs,
        "style": {"backgroundColor": _choose_colour(device, colours)},
    }


def _list_attrs(placement: Placement, i: int) -> list[dict[str, Any]]:
    graph = placement.graph
    said = {
        "op": graph.ops[i],
        "device": _shorten_device(placement, placement.device(i)),
        "requested": graph.requested[i],
        "line": placement.notes(i).at,
    }
    if i not in placement.decisions:
        return _list_pairs(said)
    reason = why.find_reason(placement, i)
    said["because"] = str(state_reason(placement, reason))
    links = {
        "because of": [
            node for name in ("leader", "producer", "source", "input") if (node := _get_linked_node(reason, name)) > 1
        ],
        "colocated with": [node for node in why.list_group_members(placement, i) if node != i][:_MOST_MEMBERS],
    }
    linked = [
        {"key": key, "value": {"type": "node_ids", "nodeIds": [graph.names[node] for node in nodes]}}
        for key, nodes in links.items()
        if nodes
    ]
    return _list_pairs(said) + linked


def _get_linked_node(reason: why.Reason, name: str) -> int:
    found = getattr(reason, name, -1)
    return found if isinstance(found, int) and found != reason.node else -1


def _list_pairs(said: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in said.items() if value]


def _describe_overlay(placed: Placed) -> dict[str, Any]:
    """Return the copies between devices, and the collectives as rings of their members, to draw above the graph."""
    placement, names = placed.placement, placed.placement.graph.names
    edges = [
        {
            "sourceNodeId": names[copy.producer],
            "targetNodeId": names[consumer],
            "label": f"{_shorten_device(placement, copy.source)} to {_shorten_device(placement, copy.target)}",
        }
        for copy in placed.crossing
        for consumer in copy.consumers
    ]
    overlay = {"name": "copies between devices", "edgeColor": _COPY_COLOUR, "edges": edges}
    rings = [
        {"sourceNodeId": names[one], "targetNodeId": names[other], "label": found.kind}
        for found in placed.collectives
        for one, other in pairwise([*found.members, found.members[0]])
        if one != other
    ]
    more = [{"name": "collectives", "edgeColor": _COLLECTIVE_COLOUR, "edges": rings}] if rings else []
    return {"type": "edge_overlays", "name": "simplace", "overlays": [overlay, *more]}


def _choose_colour(device: str, colours: Mapping[str, str]) -> str:
    return colours.get(device, "#ffffff")


def _shorten_device(placement: Placement, device: str) -> str:
    found = placement.devices.find(device)
    return found.short if found is not None else device or "not placed"


def _format_dims(shape: Shape) -> str:
    if shape is None:
        return "of unknown rank"
    return "[" + ",".join("?" if size < 0 else str(size) for size in shape) + "]"
