"""Which tensors of a step grow with its batch.

The batch is a dimension of what the program is given. What the data are made into has it as a dimension, too, or as a
factor of its first one, where rows of the batch were put together. What has the shape of a variable, such as its
gradient, does not grow, nor what such tensors are packed into for a collective.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from simplace.costs import cost_model
from simplace.costs.cluster_memory import HeldTensor
from simplace.costs.estimate import EstimatedGraph
from simplace.costs.layer_shapes import is_kept
from simplace.graph.algorithm import order_by_postorder, reverse_reachable
from simplace.graph.builder import CONTROL
from simplace.graph.op_kinds import ARGS, BATCH_DEQUEUES, CONSTANTS, PLACEHOLDERS
from simplace.partition.graph_partition import PartitionedGraph

ELEMENTS = frozenset({"IteratorGetNext", "IteratorGetNextSync", "OptionalGetValue"})
GIVEN = ARGS | PLACEHOLDERS | ELEMENTS | BATCH_DEQUEUES
_PRODUCTS = frozenset({"MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})
_TURNED = ("transpose_a", "adj_x")  # the rows of such a product are the columns of what it is given
_WHOLE_TYPES = ("int32", "int64", "bool")


def list_shapes(estimated: EstimatedGraph, node: int) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of a node's outputs that have a size."""
    return (tensor.shape for tensor in estimated.outputs[node] if tensor.size)


class BatchGrowth:
    """Tell which tensors grow with the batch, which may be split into as many `parts`."""

    def __init__(self, estimated: EstimatedGraph, batch: int, parts: int, variables: Sequence[tuple[int, ...]]) -> None:
        self._graph, self._estimated = estimated.graph, estimated
        of_variables = {dim for shape in variables for dim in shape}
        given = [i for i, node in enumerate(self._graph.nodes) if node.op in GIVEN]
        shapes = [shape for i in given for shape in list_shapes(estimated, i)]
        fed = [i for i in given if any(shape and shape[0] % batch == 0 for shape in list_shapes(estimated, i))]
        self._fed = reverse_reachable(fed, partial(_list_takers, self._graph, with_control=False))
        self._taken = of_variables | {dim for shape in shapes for dim in shape[1:]}
        apart = (i for i in range(len(self._graph)) if i not in self._fed and not self._is_made_for_data(i))
        self._fixed = self._taken | {dim for i in apart for shape in list_shapes(estimated, i) for dim in shape}
        part = batch // parts
        is_split = batch % parts == 0 and part > 1 and part not in of_variables
        self._units = [batch, part] if is_split else [batch]
        self._lengths = {prod(shape) for shape in variables}
        self._like_variables = {tuple(sorted(shape)) for shape in variables}
        self._grown: set[tuple[int, int]] = set()
        self._packed: set[tuple[int, int]] = set()  # what is made of what has the shape of variables alone
        self._follow()

    def has(self, node: int, slot: int) -> bool:
        """Return whether an output grows: of cuDNN's layers what they keep does where their result does."""
        return (node, 0 if is_kept(self._graph.nodes[node].op, slot) else slot) in self._grown

    def grows(self, tensor: cost_model.Tensor | HeldTensor) -> bool:
        """Return whether a tensor that the data are made into grows with the batch, as its shape tells."""
        return any(self._grows(tensor.shape, unit, True) for unit in self._units)

    def double_inputs(self, node: int) -> list[cost_model.Tensor]:
        """Return what a node is given with twice the batch."""
        edges = [edge for edge in self._graph.ins[node] if edge.dst_slot != CONTROL]
        pairs = zip(edges, self._estimated.list_inputs(node), strict=True)
        return [self._double(tensor) if self.has(edge.src, edge.src_slot) else tensor for edge, tensor in pairs]

    def double_outputs(self, node: int) -> list[cost_model.Tensor]:
        """Return what a node puts out with twice the batch."""
        outputs = self._estimated.outputs[node]
        return [self._double(tensor) if self.has(node, slot) else tensor for slot, tensor in enumerate(outputs)]

    def _double(self, tensor: cost_model.Tensor) -> cost_model.Tensor:
        place = next((tensor.shape.index(unit) for unit in self._units if unit in tensor.shape), 0)
        shape = tuple(2 * dim if i == place else dim for i, dim in enumerate(tensor.shape))
        return tensor._replace(shape=shape, size=2 * tensor.size)

    def _follow(self) -> None:
        """Find what grows, each tensor after those that it is made of."""
        graph, estimated = self._graph, self._estimated
        sends = {receive: send for send, receive in graph.receiver.items()}
        for node in order_by_postorder(graph.sources, partial(_list_takers, graph, with_control=True)):
            before = [edge for edge in graph.ins[sends.get(node, node)] if edge.dst_slot != CONTROL]
            given = [(edge.src, edge.src_slot) for edge in before]
            for slot in range(1 if node in sends else len(estimated.outputs[node])):
                tensor = estimated.output(node, slot)
                if tensor is None or not tensor.shape:
                    continue
                if self._has_batch(node, tensor, given):
                    self._grown.add((node, slot))
                elif self._is_packed(tensor, given):
                    self._packed.add((node, slot))

    def _has_batch(self, node: int, tensor: cost_model.Tensor, given: Sequence[tuple[int, int]]) -> bool:
        is_fed = node in self._fed
        if any(self._grows(tensor.shape, unit, is_fed) for unit in self._units):
            return not (
                len(tensor.shape) == 1 and tensor.shape[0] not in self._units and self._is_packed(tensor, given)
            )
        is_multiple = is_fed and any(unit > 1 and tensor.shape[0] % unit == 0 for unit in self._units)
        return is_multiple and tensor.shape[0] > 0 and self._keeps_rows(node, tensor, given)

    def _keeps_rows(self, node: int, tensor: cost_model.Tensor, given: Sequence[tuple[int, int]]) -> bool:
        """Return whether the rows of a tensor are those of one it is made of that grows, or all its elements are."""
        op, attrs = self._graph.nodes[node].op, self._graph.attrs_of(node)
        if op in _PRODUCTS:
            given = () if any(attrs.get(name) for name in _TURNED) else given[:1]
        for one in given:
            source = self._estimated.output(*one)
            if one not in self._grown or source is None:
                continue
            is_reshaped = op == "Reshape" and source.elements == tensor.elements
            if is_reshaped or source.shape[:1] == tensor.shape[:1]:
                return True
        return False

    def _is_packed(self, tensor: cost_model.Tensor, given: Sequence[tuple[int, int]]) -> bool:
        """Return whether a tensor has the shape of a variable, flattened or not, or is packed of such, or a part."""
        if tuple(sorted(tensor.shape)) in self._like_variables:
            return True
        if len(tensor.shape) > 1:
            return False
        if tensor.shape[0] in self._lengths:
            return True
        sources = [(one, source) for one in given if (source := self._estimated.output(*one)) is not None]
        numbers = [(one, source) for one, source in sources if source.dtype not in _WHOLE_TYPES and source.shape]
        total = sum(source.elements for _, source in numbers)
        return bool(numbers) and tensor.elements <= total and all(one in self._packed for one, _ in numbers)

    def _grows(self, shape: tuple[int, ...], unit: int, is_fed: bool) -> bool:
        first = shape[0] if shape else 0
        if first == unit or not is_fed or unit == 1:
            return first == unit
        is_multiple = first > 0 and first % unit == 0 and first not in self._fixed
        return is_multiple or (unit in shape and unit not in self._taken)

    def _is_made_for_data(self, node: int) -> bool:
        """Return whether a constant goes nowhere but to the data, whose sizes it may have from the trace."""
        takers = [edge.dst for edge in self._graph.outs[node] if edge.dst_slot != CONTROL]
        return self._graph.nodes[node].op in CONSTANTS and bool(takers) and self._fed.issuperset(takers)


def _list_takers(graph: PartitionedGraph, node: int, *, with_control: bool) -> list[int]:
    """List the nodes that an edge or a copy leads to."""
    takers = [edge.dst for edge in graph.outs[node] if with_control or edge.dst_slot != CONTROL]
    return [*takers, graph.receiver[node]] if node in graph.receiver else takers
