"""Estimate the costs of every node and every copy of a partitioned graph with a cost model."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod

from simplace.costs.cluster_cost import estimate_cluster, list_kernel_calls
from simplace.costs.cluster_memory import HeldTensor, find_held, list_arguments, list_results
from simplace.costs.cluster_ops import list_cluster_ops
from simplace.costs.cost_model import CollectiveCall, CostModel, KernelCost, OpCall, Tensor
from simplace.costs.op_work import make_tensor
from simplace.costs.outcomes import Loop
from simplace.costs.recurrent_memory import list_workspace
from simplace.costs.shape_rules import infer_shape
from simplace.costs.xla_fusion import FusedKernel, fuse_ops, keep_ops
from simplace.devices.device_set import DeviceSet
from simplace.errors import SimplaceError
from simplace.graph import dtypes
from simplace.graph.builder import CONTROL
from simplace.graph.constant_numbers import read_elements
from simplace.graph.integer_ops import INTEGER_OPS, WHOLE, Value
from simplace.graph.integer_rounds import IntegerStep, Rounds, order_steps
from simplace.graph.node_def import TensorInfo
from simplace.graph.op_kinds import MUST_COMPILE, is_constant, is_loop_cond
from simplace.kernels.kernel_lookup import computes_on_host
from simplace.lowering.reachable_functions import find_callee
from simplace.partition.collective_members import CollectiveKind
from simplace.partition.constant_folding import is_folded
from simplace.partition.graph_partition import PartitionedGraph
from simplace.partition.shapes import TensorSizes
from simplace.partition.transfers import Copy

_FREE = KernelCost(0.0)
_NOTHING = Tensor("", (), 0)
_COLLECTIVE_OPS: dict[CollectiveKind, str] = {  # as `costs.collectives` calls them
    "all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
    "all-to-all": "alltoall", "broadcast": "broadcast", "reduce": "broadcast",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Assumption:
    """Record of an assumption: `kind` is "batch", "dimension", "rank", "argument", "formula" or "branch".

    `count` is the number of tensors (of ops for "formula", of conditionals in calls that stay in the graph for
    "branch"), `example` names one, `value` is what was assumed. Sizes of kind "argument" follow from integers that were
    arguments of the first call.
    """

    kind: str
    count: int
    example: str
    value: int


@dataclass(frozen=True)
class EstimatedGraph:
    """Record of a partitioned graph with costs.

    `kernels` are by node, `outputs` the output tensors of each node, `copy_seconds` and `copied` by copy, None in the
    latter for order alone. `held` are by node what a call that stays in the graph holds at its peak besides its inputs
    and outputs, `given` the arguments, by their places, of one that is the whole graph, `loops` those
    inside of such calls, `workspaces` what cuDNN takes for a node, where it is known. `collective_calls` are by the
    numbers of collectives, of those that ops make up.
    """

    graph: PartitionedGraph
    model: CostModel
    kernels: tuple[KernelCost, ...]
    outputs: tuple[tuple[Tensor, ...], ...]
    copy_seconds: tuple[float, ...]
    copied: tuple[Tensor | None, ...]
    assumptions: tuple[Assumption, ...]
    held: Mapping[int, tuple[HeldTensor, ...]]
    given: Mapping[int, Mapping[int, Tensor]]
    loops: tuple[Loop, ...]
    workspaces: Mapping[int, tuple[Tensor, ...]]
    collective_calls: Mapping[int, CollectiveCall]

    def output(self, node: int, slot: int) -> Tensor | None:
        """Return an output of a node; a send and a receive have the tensor that they carry. None for order alone."""
        copy = self.graph.nodes[node].copy
        if copy >= 0:
            return self.copied[copy]
        return self.outputs[node][slot] if 0 <= slot < len(self.outputs[node]) else None

    def list_inputs(self, node: int) -> list[Tensor]:
        """List what a node is given, by input; nothing stands for what carries no tensor."""
        edges = (edge for edge in self.graph.ins[node] if edge.dst_slot != CONTROL)
        return [self.output(edge.src, edge.src_slot) or _NOTHING for edge in edges]

    @cached_property
    def copy_bytes(self) -> tuple[int, ...]:
        """List the bytes of the tensor that each copy carries."""
        return tuple(tensor.size if tensor else 0 for tensor in self.copied)

    @cached_property
    def costs(self) -> str:
        """Name the costs, with the links that join GPUs where the step uses them."""
        link = self.model.peer_link
        return f"{self.model.name}, {link} between GPUs" if link and self._joins_gpus() else self.model.name

    def _joins_gpus(self) -> bool:
        """Return whether GPUs of one process send each other tensors."""
        copied = zip(self.graph.copies, self.copy_bytes, strict=True)
        if any(size and joins_gpus(self.graph.placed.devices, copy) for copy, size in copied):
            return True
        return any(
            one.device_type == "GPU" and one.participants > 1 and not one.is_remote and not one.is_on_card
            for one in self.collective_calls.values()
        )

    @property
    def total_s(self) -> float:
        """Sum the times of all kernels and copies run once, one after the other."""
        return sum(cost.host_s + cost.device_s for cost in self.kernels) + sum(self.copy_seconds)


def estimate_costs(
    graph: PartitionedGraph,
    model: CostModel,
    *,
    batch: int = 32,
    growing: Collection[tuple[int, int]] = (),
    factor: int = 1,
    trips: Mapping[str, int] | None = None,
) -> EstimatedGraph:
    """Estimate the costs of a graph; `batch` replaces an unknown first dimension, 1 any other unknown one.

    `trips` are those of loops, by name, inside of calls that stay in the graph; names that no such loop has are passed
    over.

    The first dimension of `growing` outputs (ids of the graph that was partitioned, slots) is taken `factor` times.
    """
    if batch < 1:
        raise SimplaceError(f"batch must be a whole number above 0; got {batch}")
    return _Estimator(graph, model, batch, frozenset(growing), factor, trips or {}).estimated()


def estimate_copy(model: CostModel, devices: DeviceSet, copy: Copy, size: int) -> float:
    """Return the seconds that a copy of `size` bytes takes."""
    source, target = _name_ends(devices, copy)
    return model.copy(size, source, target)


def joins_gpus(devices: DeviceSet, copy: Copy) -> bool:
    """Return whether a copy goes from one GPU to another of its process."""
    return _name_ends(devices, copy) == ("GPU", "GPU")


def _name_ends(devices: DeviceSet, copy: Copy) -> tuple[str, str]:
    """Return the ends of a copy as a cost model calls them."""
    source, target = devices.by_name[copy.source], devices.by_name[copy.target]
    if not source.spec.same_address_space(target.spec):
        return "CPU", "remote"
    is_from_gpu = source.type != "CPU" and copy.source_memory == "device"
    is_to_gpu = target.type != "CPU" and copy.target_memory == "device"
    if is_from_gpu and is_to_gpu and copy.target in devices.cards.get(copy.source, ()):
        return "GPU", "same GPU"
    return ("GPU" if is_from_gpu else "CPU"), ("GPU" if is_to_gpu else "CPU")


class _Estimator:
    def __init__(
        self,
        graph: PartitionedGraph,
        model: CostModel,
        batch: int,
        growing: frozenset[tuple[int, int]],
        factor: int,
        trips: Mapping[str, int],
    ) -> None:
        self.trips = trips
        self.loops: list[Loop] = []
        self.growing = growing
        self.factor = factor
        self.graph = graph
        self.model = model
        self.batch = batch
        self.placed = graph.placed
        self.sizes = TensorSizes(graph.placed)
        self.folded = {node.origin for i, node in enumerate(graph.nodes) if is_folded(graph, i)}
        self.has_given = bool(graph.placed.program.given_values)
        self.shapes: dict[tuple[int, int], tuple[int, ...]] = {}
        self.tensors: dict[tuple[int, int], Tensor] = {}
        self.assumed: dict[str, list[str]] = {}
        self.held: dict[int, tuple[HeldTensor, ...]] = {}
        self.workspaces: dict[int, tuple[Tensor, ...]] = {}
        self.given: dict[int, dict[int, Tensor]] = {}
        self.collective_calls: dict[int, CollectiveCall] = {}

    def estimated(self) -> EstimatedGraph:
        outputs = tuple(self._outputs(node.origin) for node in self.graph.nodes)
        kernels = tuple(self._kernel(i, outputs) for i in range(len(self.graph)))
        copied = tuple(None if c.is_control else self._tensor(c.producer, c.slot) for c in self.graph.copies)
        seconds = tuple(self._copy(i, tensor.size if tensor else 0) for i, tensor in enumerate(copied))
        values = {"batch": self.batch, "dimension": 1, "rank": 0, "argument": 0, "formula": 0, "branch": 0}
        assumptions = tuple(
            Assumption(kind, len(names), names[0], values[kind]) for kind, names in sorted(self.assumed.items())
        )
        return EstimatedGraph(
            self.graph, self.model, kernels, outputs, seconds, copied, assumptions, self.held, self.given,
            tuple(self.loops), self.workspaces, self.collective_calls,
        )  # fmt: skip

    def _outputs(self, node: int) -> tuple[Tensor, ...]:
        if node < 0:
            return ()
        return tuple(self._tensor(node, slot) for slot in range(len(self.placed.graph.out_types[node])))

    def _tensor(self, node: int, slot: int) -> Tensor:
        found = self.tensors.get((node, slot))
        if found is None:
            found = self.tensors[node, slot] = self._make_tensor(node, slot)
        return found

    def _make_tensor(self, node: int, slot: int) -> Tensor:
        dtype, shape = self.placed.graph.out_types[node][slot], self._shape(node, slot)
        if (node, slot) in self.growing and shape:
            shape = (shape[0] * self.factor, *shape[1:])
        return make_tensor(dtypes.format_dtype(dtype), shape, dtypes.data_type_size(dtype))

    def _shape(self, node: int, slot: int) -> tuple[int, ...]:
        """Return a shape after those it depends on, depth first, without recursion, which a long chain would exceed."""
        asked = [] if (node, slot) in self.shapes else [((node, slot), self._assumed_shape(node, slot))]
        while asked:
            key, shape = asked[-1]
            try:
                wanted = next(shape)
            except StopIteration as found:
                self.shapes[key] = found.value
                asked.pop()
                continue
            if wanted not in self.shapes:
                asked.append((wanted, self._assumed_shape(*wanted)))
        return self.shapes[node, slot]

    def _assumed_shape(self, node: int, slot: int) -> Generator[tuple[int, int], None, tuple[int, ...]]:
        """Yield the outputs whose shapes must be known first; return the shape."""
        graph = self.placed.graph
        shape, name = self.sizes.shape(node, slot), f"{graph.names[node]}:{slot}"
        has_bytes = dtypes.data_type_size(graph.out_types[node][slot]) is not None
        if shape is not None and min(shape, default=0) >= 0:
            return shape
        if shape is None and is_loop_cond(graph.ops[node]):
            return ()
        if shape is not None and node in self.folded:  # small, whatever its size
            return tuple(max(dim, 1) for dim in shape)
        guess = self.shapes[node, slot] = self._fill(shape or ())  # for a loop that leads back here
        sources = graph.list_sources(node)
        yield from sources
        inputs = [self.shapes[source] for source in sources]
        values = [self._read_integers(*source) for source in sources]
        infer = partial(infer_shape, graph.ops[node], graph.attrs[node], inputs, slot)
        inferred = infer(values)
        if inferred is not None and (shape is None or _agrees(shape, inferred)):
            if (
                has_bytes
                and self.has_given
                and infer([self._read_integers(*ref, False) for ref in sources]) != inferred
            ):
                self.assumed.setdefault("argument", []).append(name)
            return inferred
        if shape is None:
            if has_bytes:
                self.assumed.setdefault("rank", []).append(name)
            return max(inputs, key=prod, default=())
        for place, dim in enumerate(shape):
            if dim < 0 and has_bytes:
                self.assumed.setdefault("dimension" if place else "batch", []).append(name)
        return guess

    def _fill(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return a shape with the batch as its first dimension, if that is unknown, and 1 as any other such."""
        return tuple(dim if dim >= 0 else self.batch if place == 0 else 1 for place, dim in enumerate(shape))

    def _read_integers(self, node: int, slot: int, is_of_call: bool = True) -> Value:
        """Return the integers that an output is, of constants and of shapes that are known by then.

        `is_of_call` takes the arguments of the first call, too.
        """
        known: dict[tuple[int, int], Value] = {}

        def read_leaf(ref: tuple[int, int]) -> Sequence[tuple[int, int]]:
            value = self._read_leaf(ref[0])
            known[ref] = self.placed.given_value(ref[0]) if value is None and is_of_call else value
            return ()

        steps = order_steps([(node, slot)], self._find_step, read_leaf)
        return Rounds(steps, known, {}, {}).run_once()[node, slot]

    def _find_step(self, ref: tuple[int, int]) -> IntegerStep[tuple[int, int]] | None:
        graph, (node, slot) = self.placed.graph, ref
        op = graph.ops[node]
        if op not in INTEGER_OPS or graph.out_types[node][slot] not in WHOLE:
            return None
        return IntegerStep(ref, INTEGER_OPS[op], graph.list_sources(node), graph.attrs[node], slot)

    def _read_leaf(self, node: int) -> Value:
        graph = self.placed.graph
        if is_constant(graph.ops[node]):
            constant = graph.attrs[node].get("value")
            return read_elements(constant) if isinstance(constant, TensorInfo) else None
        sources = graph.list_sources(node) if graph.ops[node] == "Shape" else []
        return self.shapes.get(sources[0]) if sources else None

    def _kernel(self, i: int, outputs: tuple[tuple[Tensor, ...], ...]) -> KernelCost:
        node = self.graph.nodes[i]
        if node.origin < 0:
            return _FREE
        placed = self.placed.graph
        inputs = tuple(self._tensor(*source) for source in placed.list_sources(node.origin))
        device = self.placed.devices.by_name[node.device].type
        if i in self.graph.collective_of:
            return self._member(self.graph.collective_of[i], device)
        if computes_on_host(self.graph.rewritten.memory.of(node.origin)):
            device = "CPU"
        call = OpCall(node.name, node.op, device, placed.attrs[node.origin], inputs, outputs[i])
        if device == "GPU" and (workspace := list_workspace(call)):
            self.workspaces[i] = workspace
        cost = self.model.kernel(call)
        if not cost.is_guess:
            return cost
        kernels = self._open_call(i, call)
        if kernels is not None:
            cost = estimate_cluster(kernels, self.model, is_compiled=_is_compiled(call))
        for one in [call] if kernels is None else list_kernel_calls(kernels):
            if self.model.kernel(one).is_guess:
                self.assumed.setdefault("formula", []).append(f"{one.name} ({one.op})")
        return cost

    def _open_call(self, i: int, call: OpCall) -> Sequence[FusedKernel] | None:
        """Return the kernels of a call that stays in the graph, and note what they hold in memory, and its loops.

        None for other ops, and for a body that does not hold.
        """
        program = self.placed.program
        called = find_callee(call.op, call.attrs, program.graph.library)
        if called is None:
            return None
        try:
            found = list_cluster_ops(program, called, call, self.batch, self.trips, is_compiled=_is_compiled(call))
        except SimplaceError:
            return None  # the call stays a guess, which is told as such
        self.loops += found.loops
        if found.branches:
            self.assumed.setdefault("branch", []).extend(found.branches)
        fused = fuse_ops(found.runs) if _is_compiled(call) else keep_ops(found.runs)
        self.held[i] = find_held(fused)
        if _is_compiled(call) and not (call.inputs or call.outputs):
            self.given[i] = list_arguments(found.runs)
            self.held[i] += tuple(list_results(found.runs))
        return fused.kernels

    def _member(self, number: int, device: str) -> KernelCost:
        """Estimate a member of a collective; what the shapes leave open is assumed as for any tensor."""
        collective = self.graph.collectives[number]
        ends = [self.placed.devices.by_name[name].spec for name in collective.devices]
        is_remote = len(ends) < collective.participants or any(not ends[0].same_address_space(end) for end in ends)
        size = collective.size if collective.size is not None else self._member_bytes(collective.members[0])
        is_on_card = not is_remote and set(collective.devices) <= set(self._list_card(collective.devices[0]))
        op = _COLLECTIVE_OPS[collective.kind]
        call = CollectiveCall(op, size, collective.participants, device, is_remote, is_on_card)
        self.collective_calls[number] = call
        return self.model.collective(call)

    def _list_card(self, device: str) -> tuple[str, ...]:
        return self.placed.devices.cards.get(device, ())

    def _member_bytes(self, node: int) -> int:
        tensors = [self._tensor(*source) for source in self.placed.graph.list_sources(node)[:1]]
        return tensors[0].size if tensors else sum(tensor.size for tensor in self._outputs(node))

    def _copy(self, i: int, size: int) -> float:
        """Estimate a copy; one without bytes, as a control edge's, moves nothing within a process, and only waits.

        See common_runtime/gpu/gpu_util.cc: no copy is enqueued where a tensor has no bytes.
        """
        devices, copy = self.placed.devices, self.graph.copies[i]
        source, target = devices.by_name[copy.source], devices.by_name[copy.target]
        if not size and source.spec.same_address_space(target.spec):
            return 0.0
        return estimate_copy(self.model, devices, copy, size)


def _agrees(shape: Sequence[int], inferred: Sequence[int]) -> bool:
    """Return whether an inferred shape has the dimensions that are known."""
    return len(shape) == len(inferred) and all(dim in (-1, own) for dim, own in zip(shape, inferred, strict=True))


def _is_compiled(call: OpCall) -> bool:
    return call.attrs.get(MUST_COMPILE) is True
