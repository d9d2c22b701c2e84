"""Variants with host-only contents (strings, resources, datasets): their consumers stay on the CPU.

Mirrors AddHostOnlyDataTypesConstraints (tensorflow/core/common_runtime/colocation_graph.cc).
"""

from __future__ import annotations

from simplace.graph.builder import CONTROL
from simplace.graph.dtypes import DataType, base_type
from simplace.graph.graph import Graph
from simplace.graph.op_kinds import CONTROL_FLOW, IDENTITIES, PARTITIONED_CALLS, RETVALS, SYMBOLIC_GRADIENT
from simplace.kernels.full_type import FullType, is_host
from simplace.kernels.registry import KernelTable
from simplace.placement.colocation_graph import ColocationGroups

_PASS_THROUGH = RETVALS | IDENTITIES | CONTROL_FLOW | PARTITIONED_CALLS | {SYMBOLIC_GRADIENT}
LIST_OPS = frozenset(
    """
    TensorListReserve TensorListFromTensor EmptyTensorList TensorListSplit TensorListScatter TensorListScatterV2
    TensorListScatterIntoExistingList TensorListPushBack TensorListPushBackBatch TensorListPopBack TensorListStack
    TensorListConcat TensorListConcatV2 TensorListGetItem TensorListSetItem TensorListGather TensorListConcatLists
    """.split()
)
_ALWAYS_ON_HOST = frozenset({DataType.DT_STRING, DataType.DT_RESOURCE})


def keep_host_only_variants(groups: ColocationGroups) -> None:
    """Narrow the groups of nodes with such a variant input to the CPU, nodes by id."""
    graph = groups.graph
    with_variant = {types for types in set(graph.in_types) if DataType.DT_VARIANT in types}
    if not with_variant:
        return
    types = _FullTypes(graph, groups.support.table)
    for node in graph.op_ids:
        if graph.in_types[node] not in with_variant:
            continue
        if all(kind == "CPU" for kind, _ in groups.types(node)):
            continue
        if _must_stay(groups, node, types):
            groups.keep_on_host(node)


class _FullTypes:
    """The full types of a graph, inferred when the first of them is needed."""

    def __init__(self, graph: Graph, table: KernelTable) -> None:
        self._graph = graph
        self._table = table
        self._types: list[FullType] | None = None

    def has_host_output(self, node: int) -> bool:
        """Return whether any output holds what must stay in host memory."""
        if self._types is None:
            from simplace.placement.type_inference import infer_types

            self._types = infer_types(self._graph, self._table)
        return any(map(is_host, self._types[node].args))


def _must_stay(groups: ColocationGroups, node: int, types: _FullTypes) -> bool:
    graph = groups.graph
    if graph.ops[node] in _PASS_THROUGH or groups.support.table.op(graph.ops[node]) is None:
        sources = (graph.edge_src[edge] for edge in graph.in_edges[node])
        fixed = groups.assigned(node).id is not None
        if any(types.has_host_output(source) for source in sources) and not fixed:
            return True
    return _list_of_host_elements(graph, node)


def _list_of_host_elements(graph: Graph, start: int) -> bool:
    """Search the variant inputs of a node for a list op; its element type decides."""
    decided: bool | None = None
    seen: set[int] = set()
    stack = [start]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if graph.ops[node] in LIST_OPS:
            element = graph.attrs[node].get("element_dtype", DataType.DT_INVALID)
            if element not in (DataType.DT_INVALID, DataType.DT_VARIANT):
                decided = base_type(element) in _ALWAYS_ON_HOST
        if decided is not None:
            continue
        for edge in graph.in_edges[node]:
            if graph.edge_src_slot[edge] == CONTROL:
                continue
            source = graph.edge_src[edge]
            if graph.out_types[source][graph.edge_src_slot[edge]] == DataType.DT_VARIANT:
                stack.append(source)
    return bool(decided)
