"""A simulated step of a placement, and what follows from its trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import hypot
from typing import Self, TypeVar, Unpack

from simplace.analysis import (
    critical_path,
    device_time,
    link_use,
    lower_bound,
    memory,
    parallelism,
    time_sources,
    utilisation,
    waits,
)
from simplace.analysis import unordered_writes as writes
from simplace.costs.estimate import EstimatedGraph
from simplace.costs.outcomes import Loop
from simplace.executor.control_flow import ControlFlow
from simplace.executor.execution import Execution, execute_graph
from simplace.executor.step_options import StepKeywords, StepOptions, Threads
from simplace.executor.trace import Trace, Why
from simplace.explain.failures import check_step
from simplace.partition.graph_partition import LeftOut
from simplace.partition.rewritten_graph import Rewritten
from simplace.partition.run_graph import choose_run
from simplace.pipeline import rewrite_by_grappler, simulate_step
from simplace.placement.placement import Placement
from simplace.program.placed_graph import PlacedGraph
from simplace.program.program import SessionRun


@dataclass(frozen=True)
class Schedule:
    """Record of a simulated step of a placement. Times are in nanoseconds unless a name says seconds.

    What ran is the graph of `estimated`, which the partition made of that of the placement; its `node_of_program` leads
    back to a node that the placement explains. Of a session, it is the part that `run` needs, None for the whole.
    """

    placement: Placement
    execution: Execution
    run: SessionRun | None = None

    @classmethod
    def of(cls, placement: Placement, options: StepOptions, rewritten: Rewritten | None = None) -> Self:
        """Simulate a step, of a session the run that needs the most nodes where `options` name none.

        `rewritten` is the placed graph as TensorFlow partitions it, where one has that already. Raises `SimplaceError`
        for a placement that TensorFlow refuses, or whose step it would fail to run.
        """
        placed = placement.runnable()
        check_step(placement)
        if options.run is None and (chosen := choose_run(placed)):
            options = replace(options, run=chosen.run)
        if options.grappler:
            rewritten = rewrite_by_grappler(placement, options)
        elif options.run is not None:
            rewritten = None  # that of the whole session
        return cls(placement, simulate_step(placed, options, rewritten), options.run)

    @property
    def placed(self) -> PlacedGraph:
        """Return the placed graph that ran: as the partition rewrote it."""
        return self.execution.estimated.graph.placed

    @property
    def estimated(self) -> EstimatedGraph:
        """Return the graph that ran, with its costs."""
        return self.execution.estimated

    @cached_property
    def left_out(self) -> Mapping[int, LeftOut]:
        """Return why ops of the placement, by id, are not in a step."""
        graph = self.estimated.graph
        return {origin: why for i, why in graph.left_out.items() if (origin := graph.rewritten.origin[i]) >= 0}

    @property
    def flow(self) -> ControlFlow:
        """Return how often loops ran, and which branches were taken."""
        return self.execution.flow

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Return how often all loops ran, those inside of what XLA compiles as well."""
        return (*self.flow.loops, *self.estimated.loops)

    @property
    def threads(self) -> Threads:
        """Return the settings of threads and cores."""
        return self.execution.options

    @property
    def executor(self) -> str:
        """Return the name of the executor."""
        return self.execution.options.executor

    @property
    def trace(self) -> Trace:
        """Return the trace: when each span ran, and on which track."""
        return self.execution.trace

    @property
    def makespan_s(self) -> float:
        """Return the time until the last step's end, in seconds."""
        return self.trace.makespan / 1e9

    @cached_property
    def critical_path(self) -> tuple[int, ...]:
        """Return the critical path of the last step, as span numbers."""
        return critical_path.critical_path(self.trace)

    @property
    def uncertainty(self) -> float:
        """Return how far off the makespan is in the mean, as a share: from the critical path of the last step."""
        return hypot(*self.errors.values())

    @cached_property
    def sources(self) -> tuple[time_sources.SourceShare, ...]:
        """Return where the time of the critical path comes from, measured first."""
        return time_sources.share_sources(self.estimated, [self.trace.spans[i] for i in self.critical_path])

    @cached_property
    def errors(self) -> Mapping[time_sources.Kind, float]:
        """Return how far off the makespan is for each kind of error, as shares of it."""
        return time_sources.list_errors(self.estimated, [self.trace.spans[i] for i in self.critical_path])

    @cached_property
    def longest_chain(self) -> int | None:
        """Return the lower bound with unlimited threads; None for graphs with loops or branches."""
        return lower_bound.compute_lower_bound(
            self.estimated, self.flow, self.threads.intra_op_size, has_streams=self.executor == "tensorflow"
        )

    @cached_property
    def waits(self) -> tuple[waits.Wait, ...]:
        """List the waiting of each node, the longest held up first."""
        return waits.list_waits(self.trace)

    @cached_property
    def waiting_by_cause(self) -> dict[Why, int]:
        """Sum the waiting up by cause."""
        return waits.sum_by_cause(self.waits)

    @cached_property
    def busy_tracks(self) -> tuple[utilisation.Busy, ...]:
        """List how busy each thread, stream and link was."""
        return utilisation.measure_tracks(self.trace, self.estimated)

    @cached_property
    def shared_links(self) -> tuple[link_use.LinkUse, ...]:
        """List how busy each link was that several GPUs or tasks share."""
        return link_use.measure_links(self.trace)

    @cached_property
    def split_cards(self) -> tuple[utilisation.CardUse, ...]:
        """List how busy each physical GPU was of which several logical ones take turns, on TensorFlow's executor."""
        if self.executor != "tensorflow":
            return ()
        return utilisation.measure_split_cards(self.trace, self.estimated)

    def measure_track_error(self, track: int) -> float:
        """Return how far off the busy time of a thread, stream or link is in the mean, as a share."""
        return time_sources.measure_error(self.estimated, (self.trace.spans[i] for i in self.trace.by_track[track]))

    def measure_kernels_error(self, devices: Sequence[str]) -> float:
        """Return how far off the time of the kernels of devices (full names) is in the mean, as a share."""
        work = utilisation.list_work(self.trace, self.estimated.graph)
        spans = [self.trace.spans[i] for device in devices for i in work.get(device, ())]
        return time_sources.measure_error(self.estimated, spans)

    @cached_property
    def busy_devices(self) -> tuple[utilisation.Busy, ...]:
        """List how busy each device was."""
        return utilisation.measure_devices(self.trace, self.estimated)

    @cached_property
    def device_times(self) -> tuple[device_time.DeviceTime, ...]:
        """List where the time of each device goes: busy, or waiting for what."""
        return device_time.account_for_time(self.trace, self.estimated, [d.name for d in self.placed.devices])

    def find_awaited(self, one: device_time.DeviceTime) -> str:
        """Return the device, in short, that another mostly waits for, "" where it waits for something else."""
        if one.main_cause != "devices":
            return ""
        node = self.trace.spans[one.waits["devices"].longest].node
        return self.placed.devices.by_name[self.estimated.graph.nodes[node].device].short

    def find_awaited_type(self, one: device_time.DeviceTime) -> str:
        """Return the type of the device that another mostly waits for, "" where it waits for something else."""
        return self.find_awaited(one).rpartition("/")[2].partition(":")[0]

    @cached_property
    def width(self) -> tuple[tuple[int, int], ...]:
        """List (time, how many tracks are busy from then on)."""
        return utilisation.count_busy_tracks(self.trace)

    @cached_property
    def widths(self) -> tuple[parallelism.DeviceParallelism, ...]:
        """List how many ops of each device run, and how many are ready, over time."""
        return parallelism.measure_parallelism(self.trace, self.estimated.graph)

    @cached_property
    def memory(self) -> tuple[memory.MemoryUse, ...]:
        """List the memory of each device."""
        return memory.memory_use(self.trace, tuple(d.name for d in self.placement.devices), self.execution.limits)

    @cached_property
    def unordered_writes(self) -> tuple[writes.UnorderedWrites, ...]:
        """List pairs of ops that write one variable with no order between them."""
        return writes.unordered_writes(self.placed)


S = TypeVar("S", bound=Schedule)


def schedule_placement(placement: Placement, **chosen: Unpack[StepKeywords]) -> Schedule:
    """Simulate when each op of a placement runs; see `StepOptions`. Raises `SimplaceError`."""
    return Schedule.of(placement, StepOptions(**chosen))


def compare_inter_op(first: S, sizes: Sequence[int]) -> tuple[S, ...]:
    """Run a schedule's graph once for each size of the inter-op pool."""
    ran = first.execution
    return tuple(
        replace(first, execution=execute_graph(ran.estimated, ran.flow, replace(ran.options, inter_op=size)))
        for size in sizes
    )
