"""The calls of a placed graph that XLA compiles whole: which ops each holds, and which of them XLA lacks a kernel for.

Mirrors `ValidateGraph` of tensorflow/compiler/tf2xla/xla_compiler.cc, and `CanCreateXlaKernel` of
tensorflow/compiler/jit/xla_kernel_creator.cc, which looks for the attribute _XlaMustCompile of a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from simplace.graph.node_def import FuncRef, FunctionDef, NodeDef
from simplace.graph.op_kinds import MUST_COMPILE, is_control_flow, is_loop_cond
from simplace.kernels.kernel_lookup import SYMBOLIC, find_kernel
from simplace.kernels.registry import AttrError, KernelTable
from simplace.lowering.function_body import is_template
from simplace.lowering.reachable_functions import find_callee
from simplace.placement.placement import Placement
from simplace.program.program import NodeNotes

_DEEPEST = 100  # calls in calls
_MOST = 1_000_000  # ops of one cluster
_ON_CPU = f"XLA_CPU{SYMBOLIC}"


@dataclass(frozen=True, slots=True)
class ClusterOp:
    """Record of an op that XLA compiles: its name as if the call were inlined, and the user's line ("" if unknown).

    `is_supported` tells whether XLA has a kernel for it, or does without: what depends on constants alone is computed
    before XLA looks for kernels (`XlaCompiler::GetGraph`).
    """

    name: str
    op: str
    at: str
    is_supported: bool


@dataclass(frozen=True, slots=True)
class Cluster:
    """Record of what XLA compiles of one call: the id of the call's node, the function, the call's device, the ops."""

    node: int
    function: str
    device: str
    ops: tuple[ClusterOp, ...]

    @property
    def device_type(self) -> str:
        """Return the type of the device, such as "GPU"."""
        return self.device.rpartition("/device:")[2].partition(":")[0]

    @property
    def unsupported(self) -> tuple[ClusterOp, ...]:
        """Return the ops that XLA has no kernel for: with one of them, TensorFlow refuses the whole call."""
        return tuple(op for op in self.ops if not op.is_supported)

    @property
    def has_control_flow(self) -> bool:
        """Return whether it has loops or branches made of ops, as TensorFlow 1 has: those are not simulated."""
        return any(is_control_flow(op.op) for op in self.ops)


def find_clusters(placement: Placement) -> tuple[Cluster, ...]:
    """Return the calls that XLA compiles, by node id."""
    graph = placement.graph
    return tuple(
        _make_cluster(placement, node)
        for node in placement.decisions
        if graph.attrs[node].get(MUST_COMPILE) is True and _find_called(placement, node) is not None
    )


def describe_lack(cluster: Cluster, op: str) -> str:
    """Return what TensorFlow says of an op that XLA has no kernel for, up to where it names the op's node."""
    kind = f"XLA_{cluster.device_type}{SYMBOLIC}"
    return (
        f"Detected unsupported operations when trying to compile graph {cluster.function}[...] on {kind}: {op} "
        f"(No registered '{op}' OpKernel for {kind} devices ...)"
    )


def _find_called(placement: Placement, node: int) -> FuncRef | None:
    op, attrs = placement.graph.ops[node], placement.graph.attrs[node]
    return find_callee(op, attrs, placement.program.graph.library)


def _make_cluster(placement: Placement, node: int) -> Cluster:
    call, device = _find_called(placement, node), placement.device(node)
    assert call is not None, "only a call makes a cluster"
    kind, table = placement.devices.by_name[device].type, _add_xla_kernels(placement.groups.support.table)
    program = placement.program
    walk = _Walk(program.graph.library, program.notes, table, kind, is_lowered=program.is_lowered)
    return Cluster(node, call.name, device, tuple(walk.list_ops(call, placement.graph.names[node])))


def _add_xla_kernels(table: KernelTable) -> KernelTable:
    """Return the table, or the one of its version that comes with simplace: TensorFlow registers the kernels of XLA
    with the first op that it runs, so that a table written before that lacks all of them.
    """
    if any(kernel.device_type.endswith(SYMBOLIC) for kernel in table.kernels("Identity")):
        return table
    return KernelTable.shipped(table.version or None)


class _Walk:
    """Walk through a function and all that it calls, as XLA does, which compiles calls and functional control flow."""

    def __init__(
        self,
        library: Mapping[str, FunctionDef],
        notes: Mapping[str, Mapping[str, NodeNotes]],
        table: KernelTable,
        device_type: str,
        *,
        is_lowered: bool,
    ) -> None:
        self._library = library
        self._notes = notes
        self._table = table
        self._compiled_for = f"XLA_{device_type}{SYMBOLIC}"
        self._is_lowered = is_lowered
        self._left = _MOST
        self._templates: dict[str, bool] = {}  # by function: to ask is a walk through its nodes
        self._supported: dict[tuple[str, int], bool] = {}  # by op and id of the attributes: nodes may share those

    def list_ops(self, call: FuncRef, path: str, depth: int = 0, *, is_inlined: bool = False) -> Iterator[ClusterOp]:
        """Yield the ops of a function; not the calls in it, but what they call.

        What nothing needs is compiled too, but for the ops of a call that is inlined before.
        """
        function = self._library[call.name]
        notes = self._notes.get(function.name, {})
        for arg in function.inputs:
            if not self._has_kernel("_Arg", {"T": arg.dtype}):
                at = notes[arg.name].at if arg.name in notes else ""
                yield ClusterOp(f"{path}/{arg.name}", "_Arg", at, is_supported=False)
        for node in _find_needed_nodes(function, self._table) if is_inlined else function.nodes:
            name = f"{path}/{node.name}"
            inner = find_callee(node.op, node.attrs, self._library)
            if inner is None:
                self._left -= 1
                at = notes[node.name].at if node.name in notes else ""
                yield ClusterOp(name, node.op, at, self._is_supported(function, node))
            if depth < _DEEPEST and self._left > 0:
                for called in [inner] if inner is not None else _list_bodies(node, self._library):
                    yield from self.list_ops(called, name, depth + 1, is_inlined=inner is not None)

    def _is_supported(self, function: FunctionDef, node: NodeDef) -> bool:
        if is_control_flow(node.op) or is_loop_cond(node.op) or self._table.op(node.op) is None:
            return True  # XLA makes functions of control flow before it looks; an unknown op is a function's gradient
        if self._is_template(function):  # the attributes of the call would tell the types
            return any(kernel.device_type == self._compiled_for for kernel in self._table.kernels(node.op))
        known = self._supported.get((node.op, id(node.attrs)))
        if known is None:
            known = self._supported[node.op, id(node.attrs)] = self._has_kernel(node.op, node.attrs) or (
                self._is_lowered and not self._has_kernel(node.op, node.attrs, _ON_CPU)
            )
        return known

    def _is_template(self, function: FunctionDef) -> bool:
        known = self._templates.get(function.name)
        if known is None:
            known = self._templates[function.name] = is_template(function)
        return known

    def _has_kernel(self, op: str, attrs: Mapping[str, Any], compiled_for: str = "") -> bool:
        try:
            return find_kernel(self._table, op, compiled_for or self._compiled_for, attrs) is not None
        except AttrError:
            return False


def _list_bodies(node: NodeDef, library: Mapping[str, FunctionDef]) -> list[FuncRef]:
    """List the functions that an op calls itself, such as the branches of an `If`."""
    values = [one for value in node.attrs.values() for one in (value if isinstance(value, tuple) else (value,))]
    return [value for value in values if isinstance(value, FuncRef) and value.name in library]


def _find_needed_nodes(function: FunctionDef, table: KernelTable) -> list[NodeDef]:
    """List the nodes that a result or a stateful op needs."""
    nodes = {node.name: node for node in function.nodes}
    stateful = [node.name for node in function.nodes if table.is_stateful(node.op)]
    waiting = [*function.ret.values(), *function.control_ret.values(), *stateful]
    needed: set[str] = set()
    while waiting:
        name = waiting.pop().removeprefix("^").partition(":")[0]
        if name in nodes and name not in needed:
            needed.add(name)
            waiting += nodes[name].inputs
    return [node for node in function.nodes if node.name in needed]
