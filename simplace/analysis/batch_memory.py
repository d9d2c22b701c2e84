"""Memory with another batch: which tensors grow with it, and the largest batch that fits.

The order of allocations is that of the simulated step; only the sizes change. A tensor grows if its first dimension is
the batch. What the given data are made into also grows if its first dimension is a multiple of the batch that no
dimension of anything else is, or if another one is the batch, which none of a variable is, nor another of the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from simplace.analysis.batch_growth import GIVEN, BatchGrowth, list_shapes
from simplace.analysis.memory import replay_step
from simplace.analysis.memory_replay import Tensor
from simplace.analysis.schedule import Schedule
from simplace.costs import cost_model
from simplace.costs.cluster_memory import HeldTensor
from simplace.costs.estimate import EstimatedGraph
from simplace.executor.kernel_memory import READ
from simplace.executor.kernel_scratch import TAKING, list_scratch, make_call
from simplace.executor.trace import PERMANENT, SCRATCH
from simplace.graph.builder import CONTROL
from simplace.graph.op_kinds import ARGS
from simplace.partition.constant_folding import is_folded

_READ = ("read", "called", "bounded", "bounded as called")  # of a condition, which may have asked for the batch's size
_MOST = 1 << 24
# Of more gradients than these, in sum of more bytes, tf.GradientTape makes sums at once.
_FEW_GRADIENTS, _MANY_BYTES = 4, 128 << 20


@dataclass(frozen=True)
class BatchMemory:
    """Record of what a program's memory is for other batches than its own, `batch`, where `growing` tensors grow.

    `batch` is 0 where nothing the program is given has a first dimension. `clash` is a node that reads a variable whose
    first dimension is the batch, too, -1 for none, `loop` one that runs as often as the batch is large, "" for none:
    with one, nothing can be said of other batches. `shares` are what grows of the memory that calls compiled by XLA,
    and workspaces of cuDNN, take while they run, by node.
    """

    schedule: Schedule
    batch: int
    growing: frozenset[Tensor]
    clash: int = -1
    loop: str = ""
    shares: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, schedule: Schedule, parts: int = 1) -> BatchMemory:
        """Find the batch of a program, and what grows with it; it may be split into as many `parts`."""
        estimated = schedule.estimated
        batch = _find_batch(estimated)
        reads = [i for i, node in enumerate(estimated.graph.nodes) if node.op == READ]
        variables = [(i, shape) for i in reads for shape in list_shapes(estimated, i)]
        clashes = [i for i, shape in variables if batch and shape[:1] == (batch,)]
        loops = [loop.name for loop in schedule.flow.loops if loop.trips == batch and loop.how in _READ]
        if not batch or clashes or loops:
            return cls(schedule, batch, frozenset(), clashes[0] if clashes else -1, loops[0] if loops else "")
        growth = BatchGrowth(estimated, batch, parts, [shape for _, shape in variables])
        growing, shares = _find_growing(schedule, growth), _find_shares(schedule, growth)
        return cls(schedule, batch, frozenset(growing), shares=dict(shares))

    def resize(self, batch: int, tensor: Tensor, size: int) -> int:
        """Return the bytes of a tensor for another batch."""
        if tensor[1] == SCRATCH and tensor[0] in self.shares:
            return round(size * (1 + self.shares[tensor[0]] * (batch / self.batch - 1)))
        return -(-size * batch // self.batch) if tensor in self.growing else size

    def fits(self, batch: int, limits: Mapping[str, int]) -> bool:
        """Return whether a step with that batch fits in the memory of every device that has a limit."""
        resize = partial(self.resize, batch)
        return all(
            replay_step(self.schedule.trace, device, resize).find_shortage(limit) is None
            for device, limit in limits.items()
            if limit
        )

    @property
    def has_folded(self) -> bool:
        """Return whether something that is folded grows, which is not folded when it is large."""
        return any(is_folded(self.schedule.estimated.graph, node) for node, _ in self.growing)

    def find_early_sums(self, batch: int) -> tuple[int, ...]:
        """Return the sums of gradients that tf.GradientTape makes before it has them all with that batch, not its own.

        With another batch the program makes another graph there, which needs less memory (`kMinAggregateBytes` of
        tensorflow/c/eager/tape.h).
        """
        graph, estimated = self.schedule.estimated.graph, self.schedule.estimated
        found: list[int] = []
        for node, part in enumerate(graph.nodes):
            before_last = sum(edge.dst_slot != CONTROL for edge in graph.ins[node]) - 1
            if part.op != "AddN" or before_last <= _FEW_GRADIENTS or (node, 0) not in self.growing:
                continue
            own = before_last * estimated.outputs[node][0].elements * 4  # whatever their type is
            if own <= _MANY_BYTES < own * batch // self.batch:
                found.append(node)
        return tuple(found)

    def find_largest(self, limits: Mapping[str, int]) -> int | None:
        """Return the largest batch that fits, 0 for none; None where the batch is unknown or nothing limits it."""
        if not self.growing or not any(limits.values()):
            return None
        low, high = 0, max(self.batch, 1)
        while self.fits(high, limits):
            low, high = high, 2 * high
            if high > _MOST:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.fits(middle, limits) else (low, middle)
        return low


def _find_batch(estimated: EstimatedGraph) -> int:
    """Return the most common first dimension of what the program is given, of equal ones the largest; 0 for none."""
    given = [i for i, node in enumerate(estimated.graph.nodes) if node.op in GIVEN]
    found = Counter(shape[0] for i in given for shape in list_shapes(estimated, i) if shape)
    return max(found, key=lambda size: (found[size], size), default=0)


def _find_growing(schedule: Schedule, growth: BatchGrowth) -> Iterator[Tensor]:
    estimated = schedule.estimated
    for i, node in enumerate(estimated.graph.nodes):
        for slot in range(1 if node.role == "recv" else len(estimated.outputs[i])):
            if growth.has(i, slot):
                yield i, PERMANENT if node.op in ARGS or is_folded(estimated.graph, i) else slot


def _find_shares(schedule: Schedule, growth: BatchGrowth) -> Iterator[tuple[int, float]]:
    estimated = schedule.estimated
    taken: Mapping[int, tuple[cost_model.Tensor | HeldTensor, ...]] = {**estimated.held, **estimated.workspaces}
    for node, held in taken.items():
        if whole := sum(tensor.size for tensor in held):
            yield node, sum(tensor.size for tensor in held if growth.grows(tensor)) / whole
    threads = schedule.execution.options.intra_op_size
    for i, part in enumerate(estimated.graph.nodes):
        if i in taken or part.op not in TAKING:
            continue
        call = make_call(estimated, i)
        grown = call._replace(inputs=growth.double_inputs(i), outputs=growth.double_outputs(i))
        if own := sum(list_scratch(call, threads)):
            yield i, sum(list_scratch(grown, threads)) / own - 1
