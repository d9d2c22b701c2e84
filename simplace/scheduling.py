"""When what of a placed graph runs: partition, price, execute, and what follows from the trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from simplace.costs.cost_model import CostModel
from simplace.costs.flat import FlatCosts
from simplace.costs.pricing import PricedGraph, price
from simplace.costs.recorded import RecordedCosts, recorded_costs
from simplace.costs.roofline import analytic
from simplace.errors import SimplaceError, choices
from simplace.executor import (
    critical_path,
    longest_chain,
    memory,
    tensorflow_model,
    textbook_model,
    utilisation,
    waiting,
    widths,
)
from simplace.executor import unordered_writes as writes
from simplace.executor.control_flow import ControlFlow, control_flow
from simplace.executor.settings import Threads
from simplace.executor.trace import Trace, Why
from simplace.partition.partition import partition
from simplace.placement.placement import Placement

EXECUTORS: Mapping[str, Callable[[PricedGraph, ControlFlow, Threads], tuple[Trace, int]]] = {
    "tensorflow": tensorflow_model.run,
    "textbook": textbook_model.run,
}


@dataclass(frozen=True)
class Schedule:
    """Hold a simulated run of a placed graph. Times are in nanoseconds unless a name says seconds."""

    priced: PricedGraph
    flow: ControlFlow
    threads: Threads
    executor: str
    trace: Trace
    events: int
    limits: Mapping[str, int]

    @property
    def placement(self) -> Placement:
        """Return the placement that was run."""
        return self.priced.graph.placement

    @property
    def makespan_s(self) -> float:
        """Return the time until the last step's end, in seconds."""
        return self.trace.makespan / 1e9

    @cached_property
    def critical_path(self) -> tuple[int, ...]:
        """List the spans, by number, that made the last step as long as it was."""
        return critical_path.critical_path(self.trace)

    @cached_property
    def longest_chain(self) -> int | None:
        """Return what no number of threads could go below; None for graphs with loops or branches."""
        return longest_chain.longest_chain(
            self.priced, self.flow, self.threads.intra_op_size, has_streams=self.executor == "tensorflow"
        )

    @cached_property
    def waits(self) -> tuple[waiting.Wait, ...]:
        """List the waiting of each node, the longest held up first."""
        return waiting.waits(self.trace)

    @cached_property
    def waiting_by_cause(self) -> dict[Why, int]:
        """Sum the waiting up by cause."""
        return waiting.by_cause(self.waits)

    @cached_property
    def busy_lanes(self) -> tuple[utilisation.Busy, ...]:
        """List how busy each thread, stream and link was."""
        return utilisation.busy_lanes(self.trace)

    @cached_property
    def busy_devices(self) -> tuple[utilisation.Busy, ...]:
        """List how busy each device was."""
        return utilisation.busy_devices(self.trace, self.priced.graph)

    @cached_property
    def width(self) -> tuple[tuple[int, int], ...]:
        """List (time, how many lanes are busy from then on)."""
        return utilisation.width(self.trace)

    @cached_property
    def widths(self) -> tuple[widths.Width, ...]:
        """List how many ops of each device run, and how many are ready, over time."""
        return widths.widths(self.trace, self.priced.graph)

    @cached_property
    def memory(self) -> tuple[memory.MemoryUse, ...]:
        """List the memory of each device."""
        return memory.memory_use(self.trace, tuple(d.name for d in self.placement.devices), self.limits)

    @cached_property
    def unordered_writes(self) -> tuple[writes.UnorderedWrites, ...]:
        """List pairs of ops that write one variable with no order between them."""
        return writes.unordered_writes(self.placement)

    def with_threads(self, threads: Threads) -> Schedule:
        """Run the same graph at the same costs with other thread settings."""
        return execute(self.priced, self.flow, threads, self.executor, self.limits)

    def gain_of_one_more_thread(self) -> float:
        """Return by which share of the makespan one more inter-op thread would shorten it; negative: it grows."""
        more = self.with_threads(replace(self.threads, inter_op=max(0, self.threads.inter_op_size) + 1))
        return 1 - more.trace.makespan / self.trace.makespan if self.trace.makespan else 0.0


def schedule(
    placement: Placement,
    *,
    inter_op: int = 0,
    intra_op: int = 0,
    cores: int = 2,
    executor: str = "tensorflow",
    costs: CostModel | str = "analytic",
    gpu: str = "a100",
    gpu_memory_fraction: float = 0.0,
    batch: int = 32,
    steps: int = 1,
    warm: bool = True,
    gpu_thread_mode: str = "global",
    trips: Mapping[str, int] | None = None,
    branches: Mapping[str, int] | None = None,
    limits: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Schedule:
    """Simulate when each op of a placement runs.

    `costs` is "analytic" (for the hardware that `gpu` names), "flat", a cost file's name, or a `CostModel`. `batch`
    stands for unknown first dimensions, `trips` and `branches` for loops and conditions (see `control_flow`). `limits`
    maps full device names to bytes; without it a GPU has what TensorFlow takes of the hardware's memory, all but a
    reserve or `gpu_memory_fraction` (per_process_gpu_memory_fraction) of it. Raises `SimplaceError`.
    """
    threads = Threads(inter_op, intra_op, cores, gpu_thread_mode, warm=warm, steps=steps, seed=seed)  # type: ignore[arg-type]
    graph = partition(placement)
    model = cost_model(costs, gpu, gpu_memory_fraction) if isinstance(costs, str) else costs
    if isinstance(model, RecordedCosts):
        model.check_belongs_to(node.name for node in graph.nodes)
    priced = price(graph, model, batch=batch)
    flow = control_flow(graph, trips=trips, branches=branches)
    found = {d.name: d.memory or model.memory(d.type) for d in placement.devices} | dict(limits or {})
    return execute(priced, flow, threads, executor, found)


def execute(
    priced: PricedGraph, flow: ControlFlow, threads: Threads, executor: str, limits: Mapping[str, int]
) -> Schedule:
    """Run a priced graph on one of the `EXECUTORS`."""
    if executor not in EXECUTORS:
        raise SimplaceError(f"{executor!r} is not an executor; there are: {choices(EXECUTORS)}")
    trace, events = EXECUTORS[executor](priced, flow, threads)
    return Schedule(priced, flow, threads, executor, trace, events, limits)


def cost_model(name: str, gpu: str = "a100", gpu_memory_fraction: float = 0.0) -> CostModel:
    """Make a cost model by name; any other name is that of a file of recorded costs."""
    if name == "flat":
        return FlatCosts()
    model = analytic(gpu, gpu_memory_fraction)
    return model if name == "analytic" else recorded_costs(name, model)


def compare_inter_op(first: Schedule, sizes: Sequence[int]) -> tuple[Schedule, ...]:
    """Run a schedule's graph once for each size of the inter-op pool."""
    return tuple(first.with_threads(replace(first.threads, inter_op=size)) for size in sizes)
