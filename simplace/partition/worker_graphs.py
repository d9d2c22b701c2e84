"""Build the graph that workers partition by device from the subgraphs that the master made per task.

A session's graph on a cluster is partitioned twice: by task (distributed_runtime/master_session.cc), then each
part by device (distributed_runtime/graph_mgr.cc). In between it is a GraphDef, so that a worker numbers its nodes in
the order in which it makes them, and has each control edge once. The control loops are in it already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simplace.graph.builder import CONTROL, Origin
from simplace.graph.dtypes import DataType
from simplace.graph.graph import Graph
from simplace.graph.node_def import TensorInfo
from simplace.partition.rewritten_graph import MADE_BY, Rewritten
from simplace.program.placed_graph import PlacedGraph

Edge = tuple[int, int, int, int]  # source, its output slot, destination, its input slot

_FLOAT = DataType.DT_FLOAT
_NO_TYPES: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """Record of a node as it is written for a worker.

    `origin` is its node in the placed graph; -1 for a send, a receive or a constant that the partition added,
    which handle a tensor of type `dtype`.
    """

    name: str
    op: str
    device: str
    origin: int
    dtype: int = _FLOAT


def by_device(device: str) -> str:
    """Return the location of a device where each device has a subgraph: the device itself."""
    return device


def by_task(device: str) -> str:
    """Return the location of a device where each task has a subgraph.

    >>> by_task("/job:worker/replica:0/task:1/device:GPU:0")
    '/job:worker/replica:0/task:1'
    """
    return device.partition("/device:")[0]


def has_master(placed: PlacedGraph) -> bool:
    """Return whether a master partitions this graph by task first; functions are partitioned by device at once."""
    return placed.program.function is None and len({by_task(each.name) for each in placed.devices}) > 1


def build_worker_graph(rewritten: Rewritten, nodes: Sequence[Written], edges: Sequence[Sequence[Edge]]) -> Rewritten:
    """Make the graph that the workers have, all their parts in one numbering.

    `nodes` are in the order in which a worker makes them, and node i is number i + 2 then; `edges` are those into each,
    by place in `nodes`. The result's `origin` gives a node of `rewritten`, -1 for what the partition added.
    """
    graph = rewritten.placed.graph
    origin = (0, 1, *(node.origin for node in nodes))
    attrs: list[Mapping[str, Any]] = [{}, {}]
    types: list[tuple[tuple[int, ...], tuple[int, ...]]] = [(_NO_TYPES, _NO_TYPES)] * 2
    for node in nodes:
        at = node.origin
        attrs.append(_node_attrs(node) if at < 0 else graph.attrs[at])
        types.append(_node_types(node) if at < 0 else (graph.in_types[at], graph.out_types[at]))
    columns = _sort_edges(nodes, edges)
    none = [""] * len(origin)
    graph_of_workers = Graph(
        [*graph.names[:2], *(node.name for node in nodes)], [*graph.ops[:2], *(node.op for node in nodes)], none, none,
        attrs, [into for into, _ in types], [out for _, out in types],
        [*graph.origins[:2], *(_node_origin(graph, node) for node in nodes)], *columns,
    )  # fmt: skip
    device_of = ["", "", *(node.device for node in nodes)]
    merges = frozenset(i for i, node in enumerate(origin) if node in rewritten.loop_merges)
    return Rewritten(replace(rewritten.placed, graph=graph_of_workers, device_of=device_of), origin, merges)


def _sort_edges(nodes: Sequence[Written], edges: Sequence[Sequence[Edge]]) -> list[list[int]]:
    """List the edges, data by slot and then control edges by name, each once."""
    found: list[Edge] = []
    for into in edges:
        data = sorted((edge for edge in into if edge[3] != CONTROL), key=lambda edge: edge[3])
        control = sorted({edge for edge in into if edge[3] == CONTROL}, key=lambda edge: nodes[edge[0]].name)
        found += [(src + 2, src_slot, dst + 2, dst_slot) for src, src_slot, dst, dst_slot in (*data, *control)]
    return [list(column) for column in zip(*found, strict=True)] or [[], [], [], []]


def _node_attrs(node: Written) -> Mapping[str, Any]:
    dtype = DataType(node.dtype)
    if node.op == "Const":
        return {"dtype": dtype, "value": TensorInfo(dtype, (0,))}
    return {"tensor_type": dtype} if node.op.endswith("Recv") else {"T": dtype}


def _node_types(node: Written) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return ((node.dtype,), ()) if node.op.endswith("Send") else ((), (node.dtype,))


def _node_origin(graph: Graph, node: Written) -> Origin:
    return graph.origins[node.origin] if node.origin >= 0 else Origin("", node.name, made_by=MADE_BY)
