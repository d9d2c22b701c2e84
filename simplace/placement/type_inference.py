"""Infer the full types of a graph's nodes, as far as TensorFlow's pass before the placer does.

Mirrors tensorflow/core/common_runtime/type_inference.cc, full_type_inference_util.cc and `IsSubtype` of
full_type_util.cc in tensorflow/core/framework, and the SetForwardTypeFn and SetReverseTypeFn calls in
tensorflow/core/ops/*.cc. A pass that fails half-way keeps what it found until then, and the graph is placed with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from simplace.graph.builder import CONTROL
from simplace.graph.graph import Graph
from simplace.kernels.full_type import UNSET, FullType
from simplace.kernels.full_types import full_type_of
from simplace.kernels.registry import KernelTable

_MOST_VISITS = 3
_ANY = FullType("TFT_ANY")
_INT32_TENSOR = FullType("TFT_TENSOR", (FullType("TFT_INT32"),))

Infer = Callable[[list[FullType]], FullType]


class TypeMismatchError(Exception):
    """End the inference of a graph: two types at one node are incompatible."""


def infer_types(graph: Graph, table: KernelTable) -> list[FullType]:
    """Return the full type of each node, a TFT_PRODUCT over its outputs, `UNSET` where nothing is known."""
    return _Inference(graph, table).run()


def is_subtype(one: FullType, other: FullType, covariant: bool = True) -> bool:
    """Return whether a type can stand where the other is expected; nothing known about the other means that it can.

    >>> string = FullType("TFT_TENSOR", (FullType("TFT_STRING"),))
    >>> is_subtype(FullType("TFT_OPTIONAL", (string,)), FullType("TFT_OPTIONAL"))
    True
    >>> is_subtype(FullType("TFT_OPTIONAL"), FullType("TFT_OPTIONAL", (string,)))
    False
    """
    if other.type_id in ("TFT_ANY", "TFT_UNSET"):
        return True
    if other.type_id == "TFT_TENSOR" and _get_arg(other, 0).type_id == "TFT_LEGACY_VARIANT":
        return True
    if one.type_id == "TFT_ENCODED":
        return is_subtype(one.args[1] if len(one.args) > 1 else _ANY, other)
    if one.type_id != other.type_id:
        return False
    for i in range(max(len(one.args), len(other.args))):
        mine = one.args[i] if i < len(one.args) else _ANY
        theirs = other.args[i] if i < len(other.args) else _ANY
        if not (is_subtype(mine, theirs) if covariant else is_subtype(theirs, mine)):
            return False
    return True


class _Inference:
    """Visit nodes from the ones without inputs on, until nothing new is found."""

    def __init__(self, graph: Graph, table: KernelTable) -> None:
        self._graph = graph
        declaring = {op for op in set(graph.ops) if _declares_types(table, op)}
        self._known = [
            (op in declaring and full_type_of(op, attrs, table)) or UNSET
            for op, attrs in zip(graph.ops, graph.attrs, strict=True)
        ]
        self._closed: set[int] = set()
        self._queue: deque[int] = deque()
        self._in_queue: set[int] = set()

    def run(self) -> list[FullType]:
        """Infer until all nodes have been visited or one fails."""
        graph = self._graph
        niladic = [node for node in range(len(graph)) if all(map(graph.is_control, graph.in_edges[node]))]
        for node in niladic:
            self._enqueue(node)
        open_nodes = dict.fromkeys(range(len(graph)))  # TensorFlow takes any of them, in the order of a hash set
        visits = dict.fromkeys(open_nodes, 0)
        while open_nodes:
            while self._queue:
                node = self._queue.popleft()
                open_nodes.pop(node, None)
                visits[node] += 1
                try:
                    self._visit(node, visits[node])
                except TypeMismatchError:
                    return self._known
            if open_nodes:
                self._enqueue(next(iter(open_nodes)))
        return self._known

    def _visit(self, node: int, visits: int) -> None:
        graph = self._graph
        updated = self._forward(node)
        iterator = self._reverse(node)
        updated = updated or iterator is not None
        self._in_queue.discard(node)
        if visits >= _MOST_VISITS or self._sources_closed(node):
            self._closed.add(node)
        for edge in graph.out_edges[node]:
            consumer = graph.edge_dst[edge]
            if graph.is_control(edge) or consumer in self._closed or consumer in self._in_queue:
                continue
            if updated or self._sources_closed(consumer):
                self._enqueue(consumer)
        if iterator is not None and iterator not in self._closed and iterator not in self._in_queue:
            self._enqueue(iterator)

    def _enqueue(self, node: int) -> None:
        self._queue.append(node)
        self._in_queue.add(node)

    def _sources_closed(self, node: int) -> bool:
        graph = self._graph
        for edge in graph.out_edges[node]:
            consumer = graph.edge_dst[edge]
            if not graph.is_control(edge) and graph.ops[consumer] in _REVERSE and consumer not in self._closed:
                return False
        if graph.ops[node] not in _FORWARD:
            return True
        return all(graph.edge_src[edge] in self._closed for edge in graph.in_edges[node] if not graph.is_control(edge))

    def _forward(self, node: int) -> bool:
        infer = _FORWARD.get(self._graph.ops[node])
        return infer is not None and self._update(node, infer(self._input_types(node)))

    def _reverse(self, node: int) -> int | None:
        """Infer the type of the node behind an input; return that node if it has a new type."""
        found = _REVERSE.get(self._graph.ops[node])
        if found is None:
            return None
        slot, infer = found
        edge = next(e for e in self._graph.in_edges[node] if self._graph.edge_dst_slot[e] == slot)
        source = self._graph.edge_src[edge]
        return source if self._update(source, infer(self._input_types(node))) else None

    def _input_types(self, node: int) -> list[FullType]:
        graph = self._graph
        edges = [edge for edge in graph.in_edges[node] if graph.edge_dst_slot[edge] != CONTROL]
        types = [UNSET] * len(edges)
        for edge in edges:
            known = self._known[graph.edge_src[edge]]
            slot = graph.edge_src_slot[edge]
            if slot < len(known.args):
                types[graph.edge_dst_slot[edge]] = known.args[slot]
        return types

    def _update(self, node: int, found: FullType) -> bool:
        known = self._known[node]
        if found == UNSET or (known != UNSET and is_subtype(known, found)):
            return False
        if known != UNSET and not is_subtype(found, known):
            raise TypeMismatchError
        self._known[node] = found
        return True


def _declares_types(table: KernelTable, op: str) -> bool:
    found = table.op(op)
    return found is not None and any(arg.full_type is not None for arg in found.outputs)


def _make_product(*args: FullType) -> FullType:
    return FullType("TFT_PRODUCT", args)


def _get_arg(full: FullType, i: int) -> FullType:
    return full.args[i] if i < len(full.args) else UNSET


def _replicate_input(count: int) -> Infer:
    return lambda types: UNSET if types[0] == UNSET else _make_product(*[types[0]] * count)


def _merge_inputs(types: list[FullType]) -> FullType:
    merged = UNSET
    for one in types:
        if one == UNSET or (is_subtype(merged, one) and not is_subtype(one, merged)):
            continue
        if not is_subtype(one, merged):
            raise TypeMismatchError
        merged = one
    return UNSET if merged == UNSET else _make_product(merged, _INT32_TENSOR)


def _infer_unstack(types: list[FullType]) -> FullType:
    return _make_product(FullType("TFT_DATASET", (_make_product(*types),)))


def _container_map(types: list[FullType]) -> FullType:
    if types[0] == UNSET:
        return UNSET
    if types[0].type_id != "TFT_DATASET":
        raise TypeMismatchError
    element = _get_arg(types[0], 0)
    if element == UNSET:
        return _make_product(FullType("TFT_DATASET"))
    if element.type_id != "TFT_PRODUCT":
        raise TypeMismatchError
    return _make_product(FullType("TFT_DATASET", (element,)))


def _map_covariant(source: str, target: str) -> Infer:
    def infer(types: list[FullType]) -> FullType:
        if types[0] == UNSET:
            return UNSET
        if types[0].type_id != source:
            raise TypeMismatchError
        return _make_product(FullType(target, types[0].args))

    return infer


def _infer_encoded(types: list[FullType]) -> FullType:
    return UNSET if types[0] == UNSET else _make_product(FullType("TFT_ENCODED", (types[0], FullType("TFT_STRING"))))


def _infer_decoded(types: list[FullType]) -> FullType:
    if _get_arg(types[0], 1).type_id not in ("TFT_UNSET", "TFT_STRING"):
        raise TypeMismatchError
    return UNSET if types[0] == UNSET else _make_product(_get_arg(types[0], 0))


def _array_of(types: list[FullType]) -> FullType:
    return _make_product(FullType("TFT_ARRAY", (types[0],)))


def _array_with(types: list[FullType]) -> FullType:
    """Add an element (input 2) to the type of an array (input 0)."""
    array, element = types[0], types[2]
    if array.type_id not in ("TFT_UNSET", "TFT_ARRAY"):
        raise TypeMismatchError
    array = FullType("TFT_ARRAY") if array == UNSET else array
    if element == UNSET:
        return _make_product(array)
    if _get_arg(array, 0) == UNSET:
        return _make_product(FullType("TFT_ARRAY", (element,)))
    if not is_subtype(element, _get_arg(array, 0)):
        raise TypeMismatchError
    return _make_product(array)


_FORWARD: Mapping[str, Infer] = {
    "Identity": _replicate_input(1),
    "Enter": _replicate_input(1),
    "Exit": _replicate_input(1),
    "NextIteration": _replicate_input(1),
    "Switch": _replicate_input(2),
    "Merge": _merge_inputs,
    "TensorSliceDataset": _infer_unstack,
    "BatchDatasetV2": _container_map,
    "AutoShardDataset": _container_map,
    "RebatchDataset": _container_map,
    "RebatchDatasetV2": _container_map,
    "DatasetToGraphV2": _infer_encoded,
    "MultiDeviceIteratorToStringHandle": _infer_encoded,
    "MultiDeviceIteratorFromStringHandle": _infer_decoded,
    "DatasetFromGraph": _infer_decoded,
    "IteratorGetNextAsOptional": _map_covariant("TFT_ITERATOR", "TFT_OPTIONAL"),
    "TensorListFromTensor": _array_of,
    "TensorListSetItem": _array_with,
}
_REVERSE: Mapping[str, tuple[int, Infer]] = {"MakeIterator": (1, _map_covariant("TFT_DATASET", "TFT_ITERATOR"))}
