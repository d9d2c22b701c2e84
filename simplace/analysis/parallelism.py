"""How many ops of each device run, and how many more are ready, over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simplace.analysis.intervals import Steps, count_open, measure_coverage, merge_intervals
from simplace.executor.trace import Span, Trace
from simplace.partition.graph_partition import PartitionedGraph

_OWN = ("op", "launch", "kernel")


@dataclass(frozen=True, slots=True)
class DeviceParallelism:
    """Record of the parallelism on a device: rows of (time in nanoseconds, count from then on), without repeats.

    `running` counts ops that a thread or stream works on, `ready` adds those that only wait for one. `working` counts
    the threads and streams, those that do a part of an op included. `mean` is the average of `running` over the time in
    which there is any.
    """

    device: str
    running: Steps
    ready: Steps
    working: Steps
    mean: float

    @property
    def widest(self) -> int:
        """Return how many ops ran at once at most."""
        return max((count for _, count in self.running), default=0)

    @property
    def most_ready(self) -> int:
        """Return how many ops ran or could have run at once at most."""
        return max((count for _, count in self.ready), default=0)

    @property
    def most_working(self) -> int:
        """Return how many threads and streams worked at once at most."""
        return max((count for _, count in self.working), default=0)


def measure_parallelism(trace: Trace, graph: PartitionedGraph) -> tuple[DeviceParallelism, ...]:
    """Return the parallelism on each device, in the order of the devices; copies do not count.

    An op is ready from the moment its inputs are there, and runs while any span of its own does: a GPU's op while it is
    launched and while its kernel runs, not in between.
    """
    executions: dict[str, dict[tuple[int, int, str], list[Span]]] = {device: {} for device in graph.devices}
    working: dict[str, list[tuple[int, int]]] = {device: [] for device in graph.devices}
    for span in trace.spans:
        node = graph.nodes[span.node]
        if node.role != "op" or not span.duration or span.kind in ("copy", "dead"):
            continue
        working[node.device].append((span.start, span.end))
        if span.kind in _OWN:
            executions[node.device].setdefault((span.node, span.step, span.iteration), []).append(span)
    return tuple(_measure_device(device, list(found.values()), working[device]) for device, found in executions.items())


def _measure_device(
    device: str, executions: Sequence[Sequence[Span]], working: Sequence[tuple[int, int]]
) -> DeviceParallelism:
    running = [interval for spans in executions for interval in merge_intervals((s.start, s.end) for s in spans)]
    ready = [(min(s.ready for s in spans), max(s.end for s in spans)) for spans in executions]
    steps = count_open(running)
    busy = measure_coverage(running)
    mean = sum(end - start for start, end in running) / busy if busy else 0.0
    return DeviceParallelism(device, steps, count_open(ready), count_open(working), mean)
