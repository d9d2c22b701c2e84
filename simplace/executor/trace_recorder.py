"""Record a run while it is simulated: spans on tracks, buffers in memory."""

from __future__ import annotations

from dataclasses import dataclass

from simplace.costs.estimate import EstimatedGraph
from simplace.executor.trace import LaneKind, MemoryChange, Span, Trace, Track
from simplace.graph.op_kinds import (
    ARGS,
    CONSTANTS,
    CONTROL_FLOW,
    IDENTITIES,
    LOOP_COND,
    RETVALS,
    VARIABLE_HANDLE,
    VARIABLES,
    is_arg,
)
from simplace.partition.transfers import MemoryTypes

_GRAIN = 256  # BFCAllocator::kMinAllocationSize: a GPU's allocator rounds up to this

# Ops whose first output is the buffer of their first input.
_SAME_BUFFER = frozenset(
    "StopGradient PreventGradient Snapshot Reshape Squeeze ExpandDims EnsureShape Bitcast".split()
).union(IDENTITIES, CONTROL_FLOW, [LOOP_COND], RETVALS)
# Ops that hand out what lives longer than the step: constants, arguments, variables.
_RESIDENT = CONSTANTS | ARGS | VARIABLES | {VARIABLE_HANDLE, "ReadVariableOp"}
# Ops that write their output into an input which no other op needs, of the same type and size: those that call
# forward_input in tensorflow/core/kernels/cwise_ops_common.{h,cc}, bias_op.cc, softmax_op.cc, aggregate_ops.cc,
# cwise_op_clip.cc and in the UnaryElementWiseOp and BinaryElementWiseOp of core/framework/numeric_op.h.
_TAKES_OVER = frozenset(
    "Abs Acos Acosh Add AddV2 Asin Asinh Atan Atan2 Atanh BitwiseAnd BitwiseOr BitwiseXor Ceil Cos Cosh Digamma Div "
    "DivNoNan Erf Erfc Exp Expm1 Floor FloorDiv FloorMod Inv InvGrad Invert Lgamma Log Log1p LogicalAnd LogicalNot "
    "LogicalOr Maximum Minimum Mod Mul MulNoNan Neg Pow RealDiv Reciprocal ReciprocalGrad Rint Round Rsqrt RsqrtGrad "
    "Sigmoid SigmoidGrad Sign Sin Sinh Sqrt SqrtGrad Square SquaredDifference Sub Tan Tanh TanhGrad TruncateDiv "
    "TruncateMod Xdivy Xlogy Relu Relu6 ReluGrad Relu6Grad Elu EluGrad Selu SeluGrad LeakyRelu LeakyReluGrad Softplus "
    "SoftplusGrad Softsign SoftsignGrad BiasAdd BiasAddV1 Softmax LogSoftmax AddN ClipByValue".split()
)


@dataclass(slots=True, eq=False)
class Buffer:
    """Record of a tensor in memory; `uses` counts who still needs it."""

    device: str
    size: int
    node: int
    slot: int
    uses: int = 1


class TraceRecorder:
    """Collect tracks, spans and memory changes."""

    def __init__(self, estimated: EstimatedGraph) -> None:
        self._priced = estimated
        self._graph = estimated.graph
        self._hosts = _find_host_cpus(estimated)
        self._memory_types = MemoryTypes(estimated.graph.placed)
        self.tracks: list[Track] = []
        self.spans: list[Span] = []
        self.changes: list[MemoryChange] = []

    def track(self, name: str, kind: LaneKind, owner: str) -> int:
        """Add a track; return its number."""
        self.tracks.append(Track(name, kind, owner))
        return len(self.tracks) - 1

    def add(self, span: Span) -> int:
        """Add a span; return its number."""
        self.spans.append(span)
        return len(self.spans) - 1

    def ends_at(self, span: int, end: int) -> None:
        """Set the end of a span that was added before its end was known."""
        s = self.spans[span]
        self.spans[span] = Span(
            s.node, s.track, s.kind, s.start, end, s.ready, s.cause, s.why, s.step, s.iteration
        )  # fmt: skip

    def outputs(self, node: int, inputs: list[object], time: int, span: int) -> list[object]:
        """Allocate what a node puts out; a slot without memory of its own has None."""
        part = self._graph.nodes[node]
        tensors = self._priced.outputs[node]
        if part.op in _RESIDENT or part.origin < 0:
            return [None] * len(tensors)
        if part.op in _SAME_BUFFER:
            first = inputs[0] if inputs else None
            if isinstance(first, Buffer):
                first.uses += len(tensors)
            return [first] * len(tensors)
        taken = self._taken_over(node, inputs) if part.op in _TAKES_OVER and len(tensors) == 1 else None
        if taken is not None:
            taken.uses += 1
            return [taken]
        return [self._output(node, slot, t.size, time, span) for slot, t in enumerate(tensors)]

    def allocate(self, device: str, size: int, node: int, slot: int, time: int, span: int) -> Buffer | None:
        """Allocate a buffer with one use; None for nothing."""
        if size <= 0:
            return None
        if device not in self._hosts.values():
            size = -(-size // _GRAIN) * _GRAIN
        self.changes.append(MemoryChange(time, device, size, node, slot, span))
        return Buffer(device, size, node, slot)

    def keep(self, payload: object) -> None:
        """Add one use."""
        if isinstance(payload, Buffer):
            payload.uses += 1

    def release(self, payload: object, time: int, span: int) -> None:
        """Drop one use; the last one frees the buffer."""
        if not isinstance(payload, Buffer):
            return
        payload.uses -= 1
        assert payload.uses >= 0, "a buffer is freed once"
        if payload.uses == 0:
            self.changes.append(MemoryChange(time, payload.device, -payload.size, payload.node, payload.slot, span))

    def host_of(self, device: str) -> str:
        """Return the CPU device that stands for the host memory beside a device."""
        return self._hosts[device]

    def trace(self, steps: list[int]) -> Trace:
        """Return the record."""
        changes = tuple(sorted(self.changes, key=lambda change: change.time))
        return Trace(tuple(self.tracks), tuple(self.spans), changes, tuple(steps), self._resident())

    def _output(self, node: int, slot: int, size: int, time: int, span: int) -> Buffer | None:
        part = self._graph.nodes[node]
        on_host = self._memory_types.of(part.origin)[1]
        is_host = slot < len(on_host) and on_host[slot]
        device = self._hosts[part.device] if is_host else part.device
        return self.allocate(device, size, node, slot, time, span)

    def _taken_over(self, node: int, inputs: list[object]) -> Buffer | None:
        """Return the first input that the output may be written into."""
        wanted, device = self._priced.outputs[node][0], self._graph.nodes[node].device
        for buffer in inputs:
            if not isinstance(buffer, Buffer) or buffer.uses != 1 or buffer.device != device:
                continue
            held = self._priced.outputs[buffer.node]
            if buffer.slot < len(held) and (held[buffer.slot].dtype, held[buffer.slot].size) == (
                wanted.dtype,
                wanted.size,
            ):
                return buffer
        return None

    def _resident(self) -> tuple[tuple[str, int, int], ...]:
        """List (device, bytes, node) of constants, arguments and variables; a variable read twice counts once."""
        found: list[tuple[str, int, int]] = []
        seen: set[int] = set()
        for i, node in enumerate(self._graph.nodes):
            if node.op not in _RESIDENT or node.origin < 0:
                continue
            origin = self._variable(i) if node.op == "ReadVariableOp" else i
            size = sum(tensor.size for tensor in self._priced.outputs[i])
            if size and origin not in seen:
                seen.add(origin)
                found.append((node.device, size, i))
        return tuple(found)

    def _variable(self, read: int) -> int:
        """Follow a read back to its variable's handle."""
        at, seen = read, set()
        while self._graph.ins[at] and at not in seen:
            seen.add(at)
            at = self._graph.ins[at][0].src
            if self._graph.nodes[at].role == "source":
                break
            op = self._graph.nodes[at].op
            if is_arg(op) or op == VARIABLE_HANDLE:
                return at
        return read


def _find_host_cpus(estimated: EstimatedGraph) -> dict[str, str]:
    """Map each device to the first CPU of its process, to itself where the process lists none."""
    devices = list(estimated.graph.placed.devices)
    return {
        d.name: next((c.name for c in devices if c.type == "CPU" and c.spec.same_address_space(d.spec)), d.name)
        for d in devices
    }
