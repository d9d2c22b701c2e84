"""Write a placed program as columns for the page: nodes, edges, reasons, copies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from simplace.explain.conflict import find_conflict
from simplace.explain.copy_causes import group_copy_causes
from simplace.explain.failures import NotCompilable, XlaOtherDevice
from simplace.explain.finding import Finding
from simplace.explain.placement_findings import find_in_placement
from simplace.graph import dtypes
from simplace.partition.shapes import TensorSizes
from simplace.placement.placement import Placement
from simplace.report.interning import Interner
from simplace.report.overview_data import overview_data
from simplace.report.packed_sentences import FIRST, PackedSentences
from simplace.result import Placed
from simplace.views.text import quantities
from simplace.views.text.finding_list import describe_finding
from simplace.views.text.traffic_phrases import list_traffic

UNKNOWN = -1  # stands for an unknown size, for no device, for no group


def graph_data(placed: Placed, devices: Sequence[str], busy: Collection[str] = ()) -> dict[str, Any]:
    """Return the columns of a program. Nodes are numbered from 0, texts are numbers into "texts" (0 is ""), devices are
    places in `devices`, which lists full names. No device of `busy` is found idle.

    Columns of nodes: "scope" and "leaf" are a name split after its last slash; "device" and "group" may be `UNKNOWN`.
    Columns of edges: "slot" is the output of the source, -1 for a control edge. Sizes are in bytes.
    """
    placement, texts = placed.placement, Interner([""])
    numbers = {name: i for i, name in enumerate(devices)}
    sentences = PackedSentences(placement)
    return {
        "name": placed.title,
        "nodes": _list_nodes(placement, numbers, texts, sentences),
        "edges": _list_edges(placement),
        "copies": _list_copies(placed, numbers, texts),
        "causes": _list_causes(placed, sentences, texts),
        "collectives": _list_collectives(placed, numbers, texts),
        "overview": overview_data(placed, numbers, texts),
        "clusters": _list_clusters(placed, texts),
        "findings": _list_findings(placed, busy),
        "refusal": _describe_refusal(placed.placement),
        "sent": list_traffic(placed.traffic),
        "explanations": [sentences.explanation(node) for node in range(FIRST, len(placement.graph))],
        **sentences.columns(),
        "texts": texts.values,
    }


def _list_nodes(
    placement: Placement, numbers: Mapping[str, int], texts: Interner[str], sentences: PackedSentences
) -> dict[str, list[int]]:
    graph, count = placement.graph, range(FIRST, len(placement.graph))
    ends = [graph.names[i].rfind("/") + 1 for i in count]
    notes = [placement.notes(i) for i in count]
    origins = list(graph.origins)[FIRST:]
    sizes = TensorSizes(placement.placed)
    return {
        "scope": [texts(graph.names[i][:end]) for i, end in zip(count, ends, strict=True)],
        "leaf": [texts(graph.names[i][end:]) for i, end in zip(count, ends, strict=True)],
        "op": [texts(graph.ops[i]) for i in count],
        "device": [numbers.get(placement.device(i), UNKNOWN) for i in count],
        "rule": [texts(sentences.rule(i)) for i in count],
        "requested": [texts(graph.requested[i]) for i in count],
        "at": [texts(note.at) for note in notes],
        "deviceAt": [texts(note.device_at) for note in notes],
        "variable": [texts(note.variable) for note in notes],
        "function": [texts(origin.function) for origin in origins],
        "via": [texts(origin.via) for origin in origins],
        "group": _number_groups(placement),
        "kernels": [texts(", ".join(kind for kind, _ in placement.groups.own_types[i])) for i in count],
        "outputs": [texts(_format_outputs(placement, sizes, i)) for i in count],
    }


def _number_groups(placement: Placement) -> list[int]:
    """Return the number of each node's colocation group, of groups of two nodes or more."""
    column = [UNKNOWN] * (len(placement.graph) - FIRST)
    shared = (members for members in placement.members.values() if len(members) > 1)
    for number, members in enumerate(shared):
        for node in members:
            column[node - FIRST] = number
    return column


def _format_outputs(placement: Placement, sizes: TensorSizes, node: int) -> str:
    types = placement.graph.out_types[node]
    return ", ".join(
        f"{dtypes.format_dtype(t)} {quantities.format_shape(sizes.shape(node, slot))}" for slot, t in enumerate(types)
    )


def _list_edges(placement: Placement) -> dict[str, list[int]]:
    graph = placement.graph
    kept = [
        e for e, (src, dst) in enumerate(zip(graph.edge_src, graph.edge_dst, strict=True)) if min(src, dst) >= FIRST
    ]
    return {
        "src": [graph.edge_src[edge] - FIRST for edge in kept],
        "dst": [graph.edge_dst[edge] - FIRST for edge in kept],
        "slot": [graph.edge_src_slot[edge] for edge in kept],
    }


def _list_copies(placed: Placed, numbers: Mapping[str, int], texts: Interner[str]) -> dict[str, Any]:
    copies = placed.copies
    return {
        "producer": [copy.producer - FIRST for copy in copies],
        "slot": [copy.slot for copy in copies],
        "source": [numbers[copy.source] for copy in copies],
        "target": [numbers[copy.target] for copy in copies],
        "type": [texts(f"{copy.dtype} {quantities.format_shape(copy.shape)}") for copy in copies],
        "size": [UNKNOWN if copy.size is None else copy.size for copy in copies],
        "sourceMemory": [texts(copy.source_memory) for copy in copies],
        "targetMemory": [texts(copy.target_memory) for copy in copies],
        "consumers": [[node - FIRST for node in copy.consumers] for copy in copies],
    }


def _list_collectives(placed: Placed, numbers: Mapping[str, int], texts: Interner[str]) -> dict[str, Any]:
    """Return columns of the collectives; "copies" are numbers of copies, [] where ops of each device do it."""
    found = placed.collectives
    return {
        "kind": [texts(one.kind) for one in found],
        "members": [[node - FIRST for node in one.members] for one in found],
        "devices": [[numbers[name] for name in one.devices] for one in found],
        "participants": [one.participants for one in found],
        "type": [texts(dtypes.format_dtype(one.dtype)) for one in found],
        "size": [UNKNOWN if one.size is None else one.size for one in found],
        "copies": [list(one.copies) for one in found],
    }


def _list_causes(placed: Placed, sentences: PackedSentences, texts: Interner[str]) -> dict[str, Any]:
    found = group_copy_causes(placed.placement, placed.copies)
    return {
        "node": [cause.reason.node - FIRST for cause in found],
        "rule": [texts(cause.reason.rule) for cause in found],
        "sentence": [sentences.reason(cause.reason) for cause in found],
        "at": [texts(cause.source) for cause in found],
        "size": [cause.size for cause in found],
        "copies": [list(cause.copies) for cause in found],
    }


def _list_clusters(placed: Placed, texts: Interner[str]) -> dict[str, Any]:
    """Return columns of the calls that XLA compiles whole, each with its ops and the user's lines of them."""
    found = placed.clusters
    return {
        "node": [one.node - FIRST for one in found],
        "function": [texts(one.function) for one in found],
        "names": [[texts(op.name) for op in one.ops] for one in found],
        "ops": [[texts(op.op) for op in one.ops] for one in found],
        "at": [[texts(op.at) for op in one.ops] for one in found],
        "isSupported": [[int(op.is_supported) for op in one.ops] for one in found],
    }


def _list_findings(placed: Placed, busy: Collection[str]) -> list[dict[str, Any]]:
    """Return what is unexpected, most important first: what it is, in a sentence, and its nodes.

    Ops inside of a call, and variables that it is given, are no nodes of the graph: the call stands for them.
    """
    ids = placed.placement.graph.ids
    return [
        {
            "title": one.title,
            "words": describe_finding(one),
            "nodes": [ids[name] - FIRST for name in _list_shown(one) if name in ids],
        }
        for one in find_in_placement(placed.placement, placed.communication, busy)
    ]


def _list_shown(finding: Finding) -> tuple[str, ...]:
    """List the nodes to show of a finding: of what XLA cannot compile, or use, the call."""
    return (finding.call,) if isinstance(finding, (NotCompilable, XlaOtherDevice)) else finding.nodes


def _describe_refusal(placement: Placement) -> dict[str, Any] | None:
    """Return the nodes over which a graph is refused, and the colocation edges between them: both ends and why."""
    refusal = placement.refusal
    if refusal is None:
        return None
    found = find_conflict(placement)
    path = found.path if found is not None else ()
    ends = [constraint.node for constraint in found.constraints] if found is not None else []
    nodes = {refusal.node, *refusal.ends, *ends, *(node for edge in path for node in (edge.first, edge.second))}
    return {
        "nodes": sorted(node - FIRST for node in nodes if FIRST <= node < len(placement.graph)),
        "path": [[edge.first - FIRST, edge.second - FIRST, edge.kind.value] for edge in path],
    }
