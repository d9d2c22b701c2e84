"""Variants that hold what only host memory can hold: they keep their users on the CPU.

Mirrors AddHostOnlyDataTypesConstraints (tensorflow/core/common_runtime/colocation_graph.cc).
"""

from __future__ import annotations

from simplace.graph.build import CONTROL
from simplace.graph.dtypes import DataType, base
from simplace.graph.model import Graph
from simplace.kernels.full_type import FullType, is_host
from simplace.kernels.full_types import FORWARDS_INPUT, full_type_of
from simplace.kernels.table import KernelTable
from simplace.placement.colocation import ColocationGroups

_PASS_THROUGH = frozenset(
    """
    _Retval _DeviceRetval Identity RefIdentity Switch _SwitchN RefSwitch Merge RefMerge _XlaMerge Enter RefEnter
    Exit RefExit NextIteration RefNextIteration PartitionedCall StatefulPartitionedCall SymbolicGradient
    """.split()
)
_LIST_OPS = frozenset(
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
    types = _FullTypes(graph, groups.support.table)
    for node in range(2, len(graph)):
        if DataType.DT_VARIANT not in graph.in_types[node]:
            continue
        if all(kind == "CPU" for kind, _ in groups.types(node)):
            continue
        if _must_stay(groups, node, types):
            groups.keep_on_host(node)


class _FullTypes:
    """Know the full types of a node's outputs, passed on by identities and control flow (WeakTypeInferencePass)."""

    def __init__(self, graph: Graph, table: KernelTable) -> None:
        self._graph = graph
        self._table = table
        self._known: dict[int, tuple[FullType | None, ...]] = {}

    def has_host_output(self, node: int) -> bool:
        """Say whether any output holds what must stay in host memory."""
        return any(full is not None and is_host(full) for full in self.outputs(node))

    def outputs(self, node: int) -> tuple[FullType | None, ...]:
        """Return the full type of each output, None where nothing is known."""
        chain: list[int] = []
        while node not in self._known:
            self._known[node] = own = self._declared(node)
            inputs = FORWARDS_INPUT.get(self._graph.ops[node])
            if inputs is None or any(own):
                break
            edges = [e for e in self._graph.in_edges[node] if self._graph.edge_dst_slot[e] == inputs[0]]
            if not edges:
                break
            chain.append(node)
            edge = edges[0]
            node = self._graph.edge_src[edge]
        made = self._known[node]
        for passed in reversed(chain):
            edge = next(e for e in self._graph.in_edges[passed] if self._graph.edge_dst_slot[e] == 0)
            slot = self._graph.edge_src_slot[edge]
            made = self._known[passed] = (made[slot] if slot < len(made) else None,) * len(
                FORWARDS_INPUT[self._graph.ops[passed]]
            )
        return made

    def _declared(self, node: int) -> tuple[FullType | None, ...]:
        made = full_type_of(self._graph.ops[node], self._graph.attrs[node], self._table)
        return made.args if made is not None else ()


def _must_stay(groups: ColocationGroups, node: int, types: _FullTypes) -> bool:
    graph = groups.graph
    if graph.ops[node] in _PASS_THROUGH or groups.support.table.op(graph.ops[node]) is None:
        sources = (graph.edge_src[edge] for edge in graph.in_edges[node])
        fixed = groups.assigned(node).id is not None
        if any(types.has_host_output(source) for source in sources) and not fixed:
            return True
    return _list_of_host_elements(graph, node)


def _list_of_host_elements(graph: Graph, start: int) -> bool:
    """Search the variants behind a node for a list op; its element type decides."""
    decided: bool | None = None
    seen: set[int] = set()
    stack = [start]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if graph.ops[node] in _LIST_OPS:
            element = graph.attrs[node].get("element_dtype", DataType.DT_INVALID)
            if element not in (DataType.DT_INVALID, DataType.DT_VARIANT):
                decided = base(element) in _ALWAYS_ON_HOST
        if decided is not None:
            continue
        for edge in graph.in_edges[node]:
            if graph.edge_src_slot[edge] == CONTROL:
                continue
            source = graph.edge_src[edge]
            if graph.out_types[source][graph.edge_src_slot[edge]] == DataType.DT_VARIANT:
                stack.append(source)
    return bool(decided)
