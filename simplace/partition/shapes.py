"""Shapes and sizes of the tensors of a placed graph, as far as they are known without running it."""

from __future__ import annotations

from simplace.graph import dtypes
from simplace.graph.node_def import Shape, ShapeAttr, TensorInfo
from simplace.graph.op_kinds import (
    CONTROL_FLOW,
    IDENTITIES,
    RETVALS,
    is_constant,
    is_loop_cond,
    is_merge,
    is_placeholder,
    is_variable,
)
from simplace.program.placed_graph import PlacedGraph

# Ops that hand input 0 on unchanged: the nodes that lowering and inlining invent have no notes of their own.
_HANDS_ON = CONTROL_FLOW | IDENTITIES | RETVALS


class TensorSizes:
    """Answer for every output of a placed graph; an answer is looked up once."""

    def __init__(self, placed: PlacedGraph) -> None:
        self._placed = placed
        self._has_notes = bool(placed.program.notes)
        self._known: dict[tuple[int, int], Shape] = {}
        self._alike: dict[tuple[str, int, int], list[int | None]] = {}
        self._sized: dict[tuple[str, int, int], list[int | None]] = {}

    def shape(self, node: int, slot: int) -> Shape:
        """Return the shape of an output, None for unknown rank, -1 for an unknown dimension."""
        chain: list[tuple[int, int]] = []
        graph = self._placed.graph
        while (node, slot) not in self._known:
            chain.append((node, slot))
            own = self._find_shape(node, slot)
            if own is not None or graph.ops[node] not in _HANDS_ON:
                self._known[node, slot] = own
                break
            source = graph.first_inputs.get(node)
            if source is None or len(chain) > len(graph):
                self._known[node, slot] = None
                break
            self._known[node, slot] = None  # a loop's NextIteration leads back here
            node, slot = graph.edge_src[source], graph.edge_src_slot[source]
        found = self._known[node, slot]
        for key in chain:
            self._known[key] = found
        return found

    def size(self, node: int, slot: int) -> int | None:
        """Return the bytes of an output, None where its type or shape leaves them open."""
        key = self._key(node)
        if key is None:
            return self._size(node, slot)
        found = self._alike.get(key)
        if found is None:
            types = self._placed.graph.out_types[node]
            found = self._alike[key] = [self._size(node, i) for i in range(len(types))]
        return found[slot]

    def _size(self, node: int, slot: int) -> int | None:
        return dtypes.count_tensor_bytes(self._placed.graph.out_types[node][slot], self.shape(node, slot))

    def output_sizes(self, node: int) -> list[int | None]:
        """Return the bytes of each output whose type has a size."""
        key = self._key(node)
        if key is None:
            return self._output_sizes(node)
        found = self._sized.get(key)
        if found is None:
            found = self._sized[key] = self._output_sizes(node)
        return found

    def _key(self, node: int) -> tuple[str, int, int] | None:
        """Return what nodes share that say the same of their outputs, None where others tell of them, too."""
        graph = self._placed.graph
        op = graph.ops[node]
        if self._has_notes or self._placed.program.observed_shapes or op in _HANDS_ON:
            return None
        return op, id(graph.attrs[node]), id(graph.out_types[node])  # the graph keeps both

    def _output_sizes(self, node: int) -> list[int | None]:
        types = self._placed.graph.out_types[node]
        return [self.size(node, slot) for slot, dtype in enumerate(types) if dtypes.data_type_size(dtype) is not None]

    def _find_shape(self, node: int, slot: int) -> Shape:
        """Return what the graph says of a shape; what it leaves open is as it was in the run, where that is known."""
        own, program = self._own_shape(node, slot), self._placed.program
        if program.observed_shapes and (own is None or min(own, default=0) < 0):
            return program.observed_shapes.get((self._placed.graph.names[node], slot), own)
        return own

    def _own_shape(self, node: int, slot: int) -> Shape:
        graph = self._placed.graph
        if self._has_notes and not graph.origins[node].made_by:
            shapes = self._placed.notes(node).shapes
            if slot < len(shapes):
                return shapes[slot]
        if is_loop_cond(graph.ops[node]) or (slot == 1 and is_merge(graph.ops[node])):
            return ()  # the other output of a Merge is the number of the input that came
        attrs = graph.attrs[node]
        stated = attrs.get("_output_shapes")
        if isinstance(stated, tuple) and slot < len(stated):
            value = stated[slot]
            return value.dims if isinstance(value, ShapeAttr) else None
        value = attrs.get("value") if is_constant(graph.ops[node]) else attrs.get("shape")
        if isinstance(value, TensorInfo):
            return value.shape
        is_input = is_placeholder(graph.ops[node]) or is_variable(graph.ops[node])
        dims: Shape = value.dims if is_input and isinstance(value, ShapeAttr) else None
        return dims
