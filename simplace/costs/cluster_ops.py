"""The ops of a call that XLA compiles whole, with their shapes, in topological order: calls in it are inlined.

What a loop or a branch does inside of a cluster is not followed: it stays one op, of which only bytes are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import prod
from typing import Any

from simplace.costs.cost_model import OpCall, Tensor
from simplace.costs.op_work import make_tensor
from simplace.costs.shape_rules import infer_shape
from simplace.costs.xla_fusion import OUTSIDE, FusibleOp, Ref
from simplace.errors import SimplaceError
from simplace.graph import dtypes
from simplace.graph.algorithm import order_by_inputs, reverse_reachable
from simplace.graph.node_def import FuncRef, FunctionDef, NodeDef, Shape
from simplace.kernels.registry import KernelTable
from simplace.lowering.op_signatures import Signatures
from simplace.lowering.reachable_functions import find_callee
from simplace.program.program import Program

Value = tuple[Ref, Tensor]
_DEEPEST = 50  # calls in calls
_MOST = 100_000  # ops of one cluster
_ASK_SHAPES = frozenset(("Shape", "ShapeN", "Size", "Rank"))  # XLA knows shapes as it compiles
# Which operands XLA copies on a CPU: a gradient of a convolution is one whose features are the batch, or whose window
# is turned round (tf2xla/kernels/conv_op_helpers.cc), and a CPU's has the features last (xla/service/cpu/
# conv_canonicalization.cc).
_TURNED: Mapping[str, tuple[int, ...]] = {"Conv2DBackpropFilter": (0, 2), "Conv2DBackpropInput": (1,)}


def list_cluster_ops(
    program: Program, function: FuncRef, call: OpCall, batch: int
) -> tuple[list[FusibleOp], list[Ref]]:
    """Return the ops of a compiled call of a function, and what it returns; what nothing needs is not compiled.

    `batch` stands for an unknown first dimension, 1 for any other. Raises `SimplaceError` for a body that refers to
    what it does not have, or to an op that is not known.
    """
    walk = _BodyInlining(program, call.device_type, batch)
    given = [((OUTSIDE, i), tensor) for i, tensor in enumerate(call.inputs)]
    results = walk.add_function(program.graph.library[function.name], given, f"{call.name}/", 0)
    return _drop_dead_ops(walk.ops, [ref for ref, _ in results])


def _drop_dead_ops(ops: Sequence[FusibleOp], results: Sequence[Ref]) -> tuple[list[FusibleOp], list[Ref]]:
    """Return the ops that results and effects need (xla/hlo/transforms/simplifiers/hlo_dce.cc), in the same order."""
    effects = (i for i, op in enumerate(ops) if _newest_table().is_stateful(op.call.op))
    wanted = {*effects, *(producer for producer, _ in results)}.difference({OUTSIDE})
    needed = reverse_reachable(wanted, lambda i: [one for one, _ in ops[i].producers if one != OUTSIDE])
    number = {OUTSIDE: OUTSIDE, **{old: new for new, old in enumerate(sorted(needed))}}

    def renumber(refs: Sequence[Ref]) -> tuple[Ref, ...]:
        return tuple((number[producer], slot) for producer, slot in refs)

    return [replace(ops[i], producers=renumber(ops[i].producers)) for i in sorted(needed)], list(renumber(results))


class _BodyInlining:
    def __init__(self, program: Program, device_type: str, batch: int) -> None:
        self.ops: list[FusibleOp] = []
        self._program = program
        self._device_type = device_type
        self._batch = batch
        self._signatures = Signatures(_newest_table(), program.graph.library)

    def add_function(self, function: FunctionDef, given: Sequence[Value], path: str, depth: int) -> list[Value]:
        """Add the ops of a function whose arguments are known; return its results."""
        known: dict[str, list[Value]] = {}
        notes = self._program.notes.get(function.name, {})
        for i, arg in enumerate(function.inputs):  # a call that was seen alone has no inputs: its arguments are noted
            shapes = notes[arg.name].shapes if arg.name in notes else ()
            noted = self._make_output("_Arg", {}, (), arg.dtype, 0, shapes[0] if shapes else None)
            known[arg.name] = known[f"{arg.name}:0"] = [given[i] if i < len(given) else ((OUTSIDE, i), noted)]
        for node in _sort_nodes(function):
            values = [one for text in node.inputs if text[0] != "^" for one in _look_up(text, known, function)]
            shapes = notes[node.name].shapes if node.name in notes else ()
            made = self._add_node(node, values, shapes, f"{path}{node.name}", depth)
            for output, first, stop in self._signatures.outputs_of(node.op, node.attrs):
                known[f"{node.name}:{output}"] = made[first:stop]
                for k, value in enumerate(made[first:stop]):
                    known[f"{node.name}:{output}:{k}"] = [value]
        return [one for result in function.outputs for one in _look_up(function.ret[result.name], known, function)]

    def _add_node(
        self, node: NodeDef, values: list[Value], shapes: Sequence[Shape], name: str, depth: int
    ) -> list[Value]:
        library = self._program.graph.library
        called = find_callee(node.op, node.attrs, library)
        if called is not None and depth < _DEEPEST:
            return self.add_function(library[called.name], values, f"{name}/", depth + 1)
        if len(self.ops) >= _MOST:
            raise SimplaceError(f"{name.partition('/')[0]} compiles more than {_MOST:,} ops")
        for i in _TURNED.get(node.op, ()) if self._device_type == "CPU" else ():
            values[i] = self._turn_operand(values[i], f"{name}/operand {i}")
        attrs = self._signatures.with_defaults(node.op, node.attrs, name)
        types = self._signatures.types_of(node.op, attrs, name)[1]
        inputs = tuple(tensor for _, tensor in values)
        outputs = tuple(
            self._make_output(node.op, attrs, inputs, dtype, slot, shapes[slot] if slot < len(shapes) else None)
            for slot, dtype in enumerate(types)
        )
        call = OpCall(name, node.op, self._device_type, attrs, inputs, outputs)
        # What only a shape is asked of need not be there.
        self.ops.append(FusibleOp(call, () if node.op in _ASK_SHAPES else tuple(ref for ref, _ in values)))
        return [((len(self.ops) - 1, slot), tensor) for slot, tensor in enumerate(outputs)]

    def _turn_operand(self, value: Value, name: str) -> Value:
        """Add the copy of an operand in the layout that a convolution reads."""
        ref, tensor = value
        turned = OpCall(name, "Transpose", self._device_type, {}, (tensor,), (tensor,))
        self.ops.append(FusibleOp(turned, (ref,)))
        return (len(self.ops) - 1, 0), tensor

    def _make_output(
        self, op: str, attrs: Mapping[str, Any], inputs: tuple[Tensor, ...], dtype: int, slot: int, shape: Shape
    ) -> Tensor:
        dims = self._assume_shape(op, attrs, [tensor.shape for tensor in inputs], slot, shape)
        return make_tensor(dtypes.format_dtype(dtype), dims, dtypes.data_type_size(dtype))

    def _assume_shape(
        self, op: str, attrs: Mapping[str, Any], inputs: list[tuple[int, ...]], slot: int, shape: Shape
    ) -> tuple[int, ...]:
        if shape is None:
            inferred = infer_shape(op, attrs, inputs) if slot == 0 else None
            return max(inputs, key=prod, default=()) if inferred is None else inferred
        return tuple(dim if dim >= 0 else self._batch if place == 0 else 1 for place, dim in enumerate(shape))


def _sort_nodes(function: FunctionDef) -> Iterator[NodeDef]:
    """Yield the nodes of a function, each after those that it reads; those of a cycle are left out."""
    number = {node.name: i for i, node in enumerate(function.nodes)}
    after: list[list[int]] = [[] for _ in function.nodes]
    pending = [0] * len(function.nodes)
    for i, node in enumerate(function.nodes):
        for text in node.inputs:
            before = number.get(text.removeprefix("^").partition(":")[0])
            if before is not None:
                after[before].append(i)
                pending[i] += 1
    for i in order_by_inputs(pending, after.__getitem__):
        yield function.nodes[i]


def _look_up(text: str, known: Mapping[str, list[Value]], function: FunctionDef) -> list[Value]:
    if text not in known:
        raise SimplaceError(f"function {function.name!r} refers to {text!r}, which it does not have")
    return known[text]


@cache
def _newest_table() -> KernelTable:
    return KernelTable.shipped()
