"""Record a run while it is simulated: spans on tracks, buffers in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from simplace.costs.cost_model import Tensor
from simplace.costs.estimate import EstimatedGraph
from simplace.executor import kernel_memory, kernel_scratch, slice_memory
from simplace.executor.bfc_allocator import round_up
from simplace.executor.list_memory import ListBuffer, ListCall, ListMemory, compute_list, is_about_lists
from simplace.executor.trace import (
    ARGUMENTS,
    PERMANENT,
    SCRATCH,
    KeptTensor,
    MemoryChange,
    PassedLink,
    SharedCopy,
    Span,
    Trace,
    Track,
    TrackKind,
    Why,
)
from simplace.executor.variable_memory import Buffer, VariableMemory
from simplace.graph.dtypes import DataType, count_tensor_bytes
from simplace.graph.node_def import ShapeAttr
from simplace.graph.op_kinds import MUST_COMPILE, RETVALS, VARIABLE_HANDLE, is_arg, is_merge

_Change = Callable[[VariableMemory, Callable[[], Buffer | None]], Buffer | None]


class TraceRecorder:
    """Collect tracks, spans and memory changes; `lengths` are those of lists, by the node that reserves them."""

    def __init__(
        self, estimated: EstimatedGraph, intra_op: int, lengths: Mapping[int, int], *, is_warm: bool = True
    ) -> None:
        self._intra_op = intra_op
        self._lengths = lengths
        self._is_warm = is_warm  # the first step is long over
        self._estimated = estimated
        self._graph = estimated.graph
        self._hosts = _find_host_cpus(estimated)
        self._cpus = {device.name for device in estimated.graph.placed.devices if device.type == "CPU"}
        self._memory_types = estimated.graph.rewritten.memory
        self.tracks: list[Track] = []
        self.spans: list[Span] = []
        self.changes: list[MemoryChange] = []
        self.links: tuple[PassedLink, ...] = ()
        self.shared: dict[int, SharedCopy] = {}  # by span
        self._given: dict[int, list[Tensor]] = {}
        self._scratch: dict[int, list[int]] = {}
        self._variables: dict[int, VariableMemory] = {}
        self._writers: set[int] = set()  # the nodes that assign or update variables
        self._row_accesses: set[int] = set()  # those that read or write rows of variables
        self._resident: list[KeptTensor] = []
        self._handed_on: dict[tuple[int, int], int] = {}  # by node and slot, the input that an output is
        self._results: list[object] = []  # of the current step, which are alive until it ends
        self._find_resident()

    def track(self, name: str, kind: TrackKind, owner: str) -> int:
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

    def starts_at(self, span: int, start: int, cause: int, why: Why) -> None:
        """Set the start of a span that was added before its start was known."""
        self.spans[span] = self.spans[span]._replace(start=start, end=start, cause=cause, why=why)

    def outputs(self, node: int, inputs: Mapping[int, object], time: int, span: int) -> list[object]:
        """Allocate what a node puts out, None for what has no memory of its own; scratch memory follows."""
        part = self._graph.nodes[node]
        tensors = self._estimated.outputs[node]
        if part.op in kernel_memory.RESIDENT or part.origin < 0:
            return [None] * len(tensors)
        if part.op == kernel_memory.READ:
            allocate = partial(self._output, node, 0, tensors[0].size, time, span)
            return [self._variable(node, 0).read(allocate)]
        if node in self._writers:
            self._write_variables(node, inputs, time, span)
        if part.op in RETVALS:
            self._keep_results(inputs)
        given = self._inputs(node)
        if is_about_lists(part.op, given):
            return self._compute_list(node, inputs, time, span)
        if node in self._row_accesses:
            self._change_variables(VariableMemory.access_rows, node, time, span)
        is_early = part.op in kernel_scratch.BEFORE_OUTPUTS
        early = self._take_scratch(node, inputs, time, span) if is_early else []
        made = [self._place_output(node, slot, inputs, given, time, span) for slot in range(len(tensors))]
        return [*made, *reversed(early if is_early else self._take_scratch(node, inputs, time, span))]

    def _compute_list(self, node: int, inputs: Mapping[int, object], time: int, span: int) -> list[object]:
        op = self._graph.nodes[node].op
        call = ListCall(op, inputs, self._inputs(node), self._estimated.outputs[node], self._lengths.get(node))

        def allocate(slot: int, size: int) -> Buffer | None:
            return self.allocate(self._graph.nodes[node].device, size, node, slot, time, span)

        return list(compute_list(call, ListMemory(allocate, lambda buffer: self.release(buffer, time, span))))

    def _take_scratch(self, node: int, inputs: Mapping[int, object], time: int, span: int) -> list[Buffer | None]:
        """Allocate what a kernel takes besides, as far as it is known; an output that nobody takes ends so."""
        part, estimated = self._graph.nodes[node], self._estimated
        parts = (each.get(node, ()) for each in (estimated.held, estimated.workspaces))
        if known := [size for size in (sum(tensor.size for tensor in each) for each in parts) if size]:
            return [self.allocate(part.device, size, node, SCRATCH, time, span) for size in known]
        if part.op not in kernel_scratch.TAKING:
            return []
        if node not in self._scratch:
            self._scratch[node] = kernel_scratch.list_scratch(kernel_scratch.make_call(estimated, node), self._intra_op)
        sizes = [*self._scratch[node]]
        written = inputs.get(kernel_scratch.find_overwritten(part.op))
        if isinstance(written, Buffer) and written.uses > 1 and part.device in self._cpus:
            sizes.insert(0, written.size)
        return [self.allocate(part.device, size, node, SCRATCH, time, span) for size in sizes]

    def _keep_results(self, results: Mapping[int, object]) -> None:
        """Keep what is returned in the caller's frame until the step has ended."""
        for one in results.values():
            self.keep(one)
            self._results.append(one)

    def end_step(self, time: int) -> None:
        """Release the results of a step that has ended."""
        for one in self._results:
            self.release(one, time, -1)
        self._results.clear()

    def _place_output(
        self, node: int, slot: int, payloads: Mapping[int, object], given: list[Tensor], time: int, span: int
    ) -> Buffer | None:
        """Forward the buffer of an input, write into it, or allocate one."""
        op, output = self._graph.nodes[node].op, self._estimated.outputs[node][slot]
        if op == slice_memory.UNPACK and not any(edge.src_slot == slot for edge in self._graph.outs[node]):
            return None  # it allocates outputs that something needs (unpack_op.cc, output_required)
        if (node, slot) not in self._handed_on:
            self._handed_on[node, slot] = self._find_handed_on(node, slot, given)
        handed_on = self._handed_on[node, slot]
        if handed_on >= 0:
            found = next(iter(payloads.values()), None) if is_merge(op) else payloads.get(handed_on)
            if not isinstance(found, Buffer):
                return None
            found.uses += 1
            return found
        device = self._graph.nodes[node].device
        into = () if op in kernel_scratch.POOLINGS and device not in self._cpus else given  # cuDNN's allocates
        for number in kernel_memory.list_forwardable(op, slot, into, output):
            found = payloads.get(number)
            if isinstance(found, Buffer) and found.uses == 1 and found.device == device:
                found.uses += 1
                return found
        return self._output(node, slot, output.size, time, span)

    def _find_handed_on(self, node: int, slot: int, given: list[Tensor]) -> int:
        """Return the number of the input that an output is, or is a part of, -1 for none."""
        op, output = self._graph.nodes[node].op, self._estimated.outputs[node][slot]
        if op not in slice_memory.SLICES or not given:
            return kernel_memory.find_input_handed_on(op, slot, given, output)
        numbers = [kernel_scratch.read_constant(self._graph, node, place) for place in range(1, len(given))]
        attrs = self._graph.attrs_of(node)
        return 0 if slice_memory.shares_memory(op, attrs, given[0], output, numbers) else -1

    def _inputs(self, node: int) -> list[Tensor]:
        """List what a node is given, by slot."""
        if node not in self._given:
            self._given[node] = self._estimated.list_inputs(node)
        return self._given[node]

    # variables

    def _write_variables(self, node: int, inputs: Mapping[int, object], time: int, span: int) -> None:
        """Do to variables what a kernel does that assigns or updates them."""
        if self._graph.nodes[node].op == kernel_memory.ASSIGN:
            allocate = partial(self._output_of_variable, node, self._inputs(node)[1].size, time, span)
            old = self._variable(node, 0).assign(inputs.get(1), allocate)
            self.release(old, time, span)
        else:
            self._change_variables(VariableMemory.update, node, time, span)

    def _change_variables(self, change: _Change, node: int, time: int, span: int) -> None:
        """Do the same to all variables that a node is given."""
        for slot, given in enumerate(self._inputs(node)):
            if given.dtype == "resource":
                variable = self._variable(node, slot)
                size = 0 if variable.buffer is None else variable.buffer.size
                old = change(variable, partial(self._output_of_variable, node, size, time, span))
                self.release(old, time, span)

    def allocate(self, device: str, size: int, node: int, slot: int, time: int, span: int) -> Buffer | None:
        """Allocate a buffer with one use; None for nothing."""
        if size <= 0:
            return None
        size = self._round(device, size)
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
        if payload.uses:
            return
        if payload.size:
            self.changes.append(MemoryChange(time, payload.device, -payload.size, payload.node, payload.slot, span))
        for item in payload.items if isinstance(payload, ListBuffer) else ():
            self.release(item, time, span)

    def host_of(self, device: str) -> str:
        """Return the CPU device that stands for the host memory beside a device."""
        return self._hosts[device]

    def trace(self, steps: list[int]) -> Trace:
        """Return the record."""
        changes = tuple(sorted(self.changes, key=lambda change: change.time))
        return Trace(tuple(self.tracks), tuple(self.spans), changes, tuple(steps), tuple(self._resident), self.links,
                     self.shared)  # fmt: skip

    def _round(self, device: str, size: int) -> int:
        return size if device in self._hosts.values() else round_up(size)

    def _output(self, node: int, slot: int, size: int, time: int, span: int) -> Buffer | None:
        part = self._graph.nodes[node]
        on_host = self._memory_types.of(part.origin)[1]
        is_host = slot < len(on_host) and on_host[slot]
        device = self._hosts[part.device] if is_host else part.device
        return self.allocate(device, size, node, slot, time, span)

    def _output_of_variable(self, node: int, size: int, time: int, span: int) -> Buffer | None:
        return self.allocate(self._graph.nodes[node].device, size, node, PERMANENT, time, span)

    def _variable(self, node: int, slot: int) -> VariableMemory:
        return self._variables.setdefault(self._find_handle(node, slot), VariableMemory(None))

    def _find_resident(self) -> None:
        """Find constants, arguments and variables, each variable once, however often used."""
        for i, node in enumerate(self._graph.nodes):
            if node.op in kernel_memory.RESIDENT:
                size = sum(tensor.size for tensor in self._estimated.outputs[i])
                if size and node.origin >= 0:
                    self._resident.append(KeptTensor(node.device, self._round(node.device, size), i))
            elif node.op == kernel_memory.READ:
                self._add_variable(i, 0, self._estimated.outputs[i][0].size)
        for i, node in enumerate(self._graph.nodes):
            by_rows = node.op.startswith(kernel_memory.ROW_ACCESS)
            if node.op == kernel_memory.ASSIGN or node.op.startswith(kernel_memory.UPDATES):
                self._writers.add(i)
            elif not by_rows and not self._is_compiled(i):
                continue
            for slot, given in enumerate(self._inputs(i)):
                if given.dtype == "resource":
                    self._add_variable(i, slot, self._value_bytes(self._find_handle(i, slot)))
                    self._variable(i, slot).is_copied |= by_rows and self._is_warm
                    self._row_accesses |= {i} if by_rows else set()
        for i, arguments in self._estimated.given.items():
            device = self._graph.nodes[i].device
            for place, tensor in arguments.items():
                self._resident.append(KeptTensor(device, self._round(device, tensor.size), i, ARGUMENTS - place))

    def _is_compiled(self, node: int) -> bool:
        """Return whether a node is a call that XLA compiles: what it does with variables is not followed."""
        origin = self._graph.nodes[node].origin
        return origin >= 0 and self._graph.placed.graph.attrs[origin].get(MUST_COMPILE) is True

    def _add_variable(self, node: int, slot: int, size: int) -> None:
        handle = self._find_handle(node, slot)
        if size and handle not in self._variables:
            device = self._graph.nodes[node].device
            buffer = Buffer(device, self._round(device, size), node, PERMANENT)
            self._variables[handle] = VariableMemory(buffer)
            self._resident.append(KeptTensor(device, buffer.size, handle if self._is_compiled(node) else node))

    def _value_bytes(self, handle: int) -> int:
        """Return the bytes of the value that a handle stands for, 0 where nothing tells them."""
        part, placed = self._graph.nodes[handle], self._estimated.graph.placed
        if part.origin < 0:
            return 0
        attrs = placed.graph.attrs[part.origin]
        if is_arg(part.op):
            resource = placed.program.resources.get(attrs["index"])
            return (resource.size or 0) if resource is not None else 0
        shape, dtype = attrs.get("shape"), attrs.get("dtype")
        if part.op != VARIABLE_HANDLE or not isinstance(shape, ShapeAttr) or not isinstance(dtype, DataType):
            return 0
        return count_tensor_bytes(dtype, shape.dims) or 0

    def _find_handle(self, node: int, slot: int) -> int:
        """Follow the first inputs back from an input to the handle of a variable; return the node where it is lost."""
        edges = [edge for edge in self._graph.ins[node] if edge.dst_slot == slot]
        at, seen = edges[0].src if edges else node, {node}
        while at not in seen:
            op = self._graph.nodes[at].op
            if is_arg(op) or op == VARIABLE_HANDLE:
                return at
            seen.add(at)
            edges = [edge for edge in self._graph.ins[at] if edge.dst_slot == 0]
            at = edges[0].src if edges else at
        return at


def _find_host_cpus(estimated: EstimatedGraph) -> dict[str, str]:
    """Map each device to the first CPU of its process, to itself where the process lists none."""
    devices = estimated.graph.placed.devices
    return {device.name: devices.find_host(device.name) for device in devices}
