"""The ops of a call that stays in the graph, with their shapes, in topological order: calls in it are inlined.

XLA compiles most such calls whole; others are run op by op.

A loop or a branch is one op that has ops of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import prod
from typing import Any

from simplace.costs.cluster_loops import count_trips, find_invariants, read_integer
from simplace.costs.cost_model import OpCall, Tensor
from simplace.costs.op_work import make_tensor
from simplace.costs.outcomes import DEFAULT_TRIPS, Loop
from simplace.costs.shape_rules import infer_shape
from simplace.costs.xla_fusion import OUTSIDE, ClusterBody, ClusterOps, FusibleOp, Ref
from simplace.errors import SimplaceError
from simplace.graph import dtypes
from simplace.graph.algorithm import order_by_inputs, reverse_reachable
from simplace.graph.node_def import FuncRef, FunctionDef, NodeDef, Shape
from simplace.graph.op_kinds import is_case, is_if, is_while
from simplace.kernels.kernel_lookup import computes_on_host, find_kernel, memory_types
from simplace.kernels.registry import KernelTable
from simplace.lowering.graph_constructor import wrong_input_count
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


@dataclass(frozen=True, slots=True)
class CompiledCall:
    """Record of what a compiled call runs, of its loops, and of the branches that were chosen without knowing which."""

    runs: ClusterOps
    loops: tuple[Loop, ...]
    branches: tuple[str, ...]


def list_cluster_ops(
    program: Program,
    function: FuncRef,
    call: OpCall,
    batch: int,
    trips: Mapping[str, int] | None = None,
    *,
    is_compiled: bool = True,
) -> CompiledCall:
    """List the ops of a call of a function, without those that nothing needs; count how often its loops run.

    Those that XLA compiles are all on the call's device. Of others those are on the CPU that have no kernel there, or
    one with all its tensors in host memory.

    `batch` stands for an unknown first dimension, 1 for any other; `trips` are those of loops by name. Of a branch the
    first function counts (of an If: then) where the index is no constant. Raises `SimplaceError` for a body that refers
    to what it does not have, or to an op that is not known.
    """
    cluster = _Cluster(program, call.device_type, batch, dict(trips or {}), is_compiled)
    given = [((OUTSIDE, i), tensor) for i, tensor in enumerate(call.inputs)]
    runs = _BodyInlining(cluster).list_ops(program.graph.library[function.name], given, f"{call.name}/", 0)
    return CompiledCall(_drop_dead_ops(runs), tuple(cluster.loops), tuple(cluster.branches))


def _drop_dead_ops(cluster: ClusterOps) -> ClusterOps:
    """Return the ops that results and effects need (xla/hlo/transforms/simplifiers/hlo_dce.cc), in the same order."""
    ops = cluster.ops
    effects = (i for i, op in enumerate(ops) if _newest_table().is_stateful(op.call.op))
    wanted = {*effects, *(producer for producer, _ in cluster.results)}.difference({OUTSIDE})
    needed = reverse_reachable(wanted, lambda i: [one for one, _ in ops[i].producers if one != OUTSIDE])
    number = {OUTSIDE: OUTSIDE, **{old: new for new, old in enumerate(sorted(needed))}}

    def renumber(refs: Sequence[Ref]) -> tuple[Ref, ...]:
        return tuple((number[producer], slot) for producer, slot in refs)

    kept = tuple(replace(ops[i], producers=renumber(ops[i].producers)) for i in sorted(needed))
    return ClusterOps(kept, renumber(cluster.results))


@dataclass
class _Cluster:
    """What all functions of a cluster share, and what is found in them."""

    program: Program
    device_type: str
    batch: int
    trips: Mapping[str, int]
    is_compiled: bool
    count: int = 0
    loops: list[Loop] = field(default_factory=list)
    branches: list[str] = field(default_factory=list)

    @cached_property
    def signatures(self) -> Signatures:
        return Signatures(_newest_table(), self.program.graph.library)

    def find_device_type(self, op: str, attrs: Mapping[str, Any]) -> str:
        """Return where an op computes."""
        if self.is_compiled or self.device_type == "CPU":
            return self.device_type
        table = _newest_table()
        if find_kernel(table, op, self.device_type, attrs) is None:
            return "CPU"
        return "CPU" if computes_on_host(memory_types(table, op, self.device_type, attrs)) else self.device_type


class _BodyInlining:
    """The ops of a function and of those that it calls; `given` are the arguments that are known integers."""

    def __init__(self, cluster: _Cluster, given: Mapping[int, int] | None = None) -> None:
        self.ops: list[FusibleOp] = []
        self._cluster = cluster
        self._integers: dict[Ref, int] = {(OUTSIDE, i): value for i, value in (given or {}).items()}

    def list_ops(self, function: FunctionDef, given: Sequence[Value], path: str, depth: int) -> ClusterOps:
        """Return the ops of a function and its results."""
        results = self.add_function(function, given, path, depth)
        return ClusterOps(tuple(self.ops), tuple(ref for ref, _ in results))

    def add_function(self, function: FunctionDef, given: Sequence[Value], path: str, depth: int) -> list[Value]:
        """Add the ops of a function whose arguments are known; return its results."""
        known: dict[str, list[Value]] = {}
        notes = self._cluster.program.notes.get(function.name, {})
        for i, arg in enumerate(function.inputs):  # a call that was seen alone has no inputs: its arguments are noted
            shapes = notes[arg.name].shapes if arg.name in notes else ()
            noted = self._make_output("_Arg", {}, (), arg.dtype, 0, shapes[0] if shapes else None)
            known[arg.name] = known[f"{arg.name}:0"] = [given[i] if i < len(given) else ((OUTSIDE, i), noted)]
        for node in _sort_nodes(function):
            values = [one for text in node.inputs if text[0] != "^" for one in _look_up(text, known, function)]
            shapes = notes[node.name].shapes if node.name in notes else ()
            made = self._add_node(node, values, shapes, f"{path}{node.name}", depth)
            for output, first, stop in self._cluster.signatures.outputs_of(node.op, node.attrs):
                known[f"{node.name}:{output}"] = made[first:stop]
                for k, value in enumerate(made[first:stop]):
                    known[f"{node.name}:{output}:{k}"] = [value]
        return [
            one for result in function.outputs for one in _look_up(function.ret.get(result.name, ""), known, function)
        ]

    def _add_node(
        self, node: NodeDef, values: list[Value], shapes: Sequence[Shape], name: str, depth: int
    ) -> list[Value]:
        library = self._cluster.program.graph.library
        called = find_callee(node.op, node.attrs, library)
        if called is not None and depth < _DEEPEST:
            return self.add_function(library[called.name], values, f"{name}/", depth + 1)
        self._cluster.count += 1
        if self._cluster.count > _MOST:
            raise SimplaceError(f"{name.partition('/')[0]} compiles more than {_MOST:,} ops")
        for i in _TURNED.get(node.op, ()) if self._cluster.device_type == "CPU" else ():
            values[i] = self._turn_operand(values[i], f"{name}/operand {i}")
        attrs = self._cluster.signatures.with_defaults(node.op, node.attrs, name)
        taken, types = self._cluster.signatures.types_of(node.op, attrs, name)
        if len(taken) != len(values):
            raise wrong_input_count(name, node.op, len(values), len(taken))
        inputs = tuple(tensor for _, tensor in values)
        outputs = tuple(
            self._make_output(node.op, attrs, inputs, dtype, slot, shapes[slot] if slot < len(shapes) else None)
            for slot, dtype in enumerate(types)
        )
        call = OpCall(name, node.op, self._cluster.find_device_type(node.op, attrs), attrs, inputs, outputs)
        body = self._find_body(node, values, name, depth) if depth < _DEEPEST else None
        # What only a shape is asked of need not be there.
        self.ops.append(FusibleOp(call, () if node.op in _ASK_SHAPES else tuple(ref for ref, _ in values), body))
        return [((len(self.ops) - 1, slot), tensor) for slot, tensor in enumerate(outputs)]

    def _find_body(self, node: NodeDef, values: Sequence[Value], name: str, depth: int) -> ClusterBody | None:
        """Return what a loop or a branch runs, None for other ops."""
        if is_while(node.op):
            return self._read_loop(node, values, name, depth)
        if not (is_if(node.op) or is_case(node.op)):
            return None
        index = self._read_integer(values[0][0]) if values else None
        if index is None:
            self._cluster.branches.append(name)
        chosen = _choose_branch(node, index)
        runs = self._list_ops_of(chosen, values[1:], name, depth, {})
        return ClusterBody(_drop_dead_ops(runs), 1, None if index is not None else ClusterOps((), ()))

    def _read_loop(self, node: NodeDef, values: Sequence[Value], name: str, depth: int) -> ClusterBody:
        starts = {i: value for i, (ref, _) in enumerate(values) if (value := self._read_integer(ref)) is not None}
        body = node.attrs.get("body")
        function = self._find_function(body, values)
        if len(function.outputs) != len(values):
            raise SimplaceError(f"{function.name} returns {len(function.outputs)} values to a loop of {len(values)}")
        fixed = {i: starts[i] for i in find_invariants(function) if i in starts}
        condition = self._list_ops_of(node.attrs.get("cond"), values, name, depth, fixed)
        place = len(self._cluster.loops)
        runs = self._list_ops_of(body, values, name, depth, fixed)
        asked_for = self._cluster.trips.get(name)
        count = count_trips(condition, runs, starts, fixed, asked_for)
        loop = Loop(name, DEFAULT_TRIPS, "assumed")
        if count.trips is not None:
            loop = Loop(name, count.trips, "read" if asked_for is None else "given")
        self._cluster.loops.insert(place, loop)  # before those inside of it
        self._integers |= {(len(self.ops), i): value for i, value in count.finals.items()}
        asked = None if count.is_known else _drop_dead_ops(condition)
        results = tuple((OUTSIDE, i) if i in count.merged else ref for i, ref in enumerate(runs.results))
        return ClusterBody(_drop_dead_ops(replace(runs, results=results)), loop.trips, asked)

    def _list_ops_of(
        self, called: Any, values: Sequence[Value], name: str, depth: int, integers: Mapping[int, int]
    ) -> ClusterOps:
        given = [((OUTSIDE, i), tensor) for i, (_, tensor) in enumerate(values)]
        inside = _BodyInlining(self._cluster, integers)
        return inside.list_ops(self._find_function(called, values), given, f"{name}/", depth + 1)

    def _find_function(self, called: Any, values: Sequence[Value]) -> FunctionDef:
        library = self._cluster.program.graph.library
        if not isinstance(called, FuncRef) or called.name not in library:
            raise SimplaceError(f"a loop or a branch runs {called!r}, which the graph does not have")
        function = library[called.name]
        if len(function.inputs) != len(values):
            raise SimplaceError(f"{called.name} takes {len(function.inputs)} arguments, and is given {len(values)}")
        return function

    def _read_integer(self, ref: Ref) -> int | None:
        return read_integer(self.ops, ref, self._integers)

    def _turn_operand(self, value: Value, name: str) -> Value:
        """Add the copy of an operand in the layout that a convolution reads."""
        ref, tensor = value
        turned = OpCall(name, "Transpose", self._cluster.device_type, {}, (tensor,), (tensor,))
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
        if shape is None and is_while(op):
            return inputs[slot]
        if shape is None:
            inferred = infer_shape(op, attrs, inputs, slot)
            return max(inputs, key=prod, default=()) if inferred is None else inferred
        return tuple(dim if dim >= 0 else self._cluster.batch if place == 0 else 1 for place, dim in enumerate(shape))


def _choose_branch(node: NodeDef, index: int | None) -> Any:
    """Return the function that a branch runs, the first one where the index is not known.

    An index that no branch has means the last one (xla/backends/gpu/runtime/conditional_thunk.cc).
    """
    if is_if(node.op):
        return node.attrs.get("else_branch" if index == 0 else "then_branch")
    branches = node.attrs.get("branches") or (None,)
    place = index or 0
    return branches[place if 0 <= place < len(branches) else -1]


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
