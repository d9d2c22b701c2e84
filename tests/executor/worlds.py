"""Small placed graphs in text form, costs by name, and what the executors make of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

import simplace
from simplace.analysis.schedule import Schedule, schedule_placement
from simplace.costs.cost_model import Bound, CollectiveCall, Fixed, KernelCost, OpCall, Overheads, PeerWay, Reliability
from simplace.devices.device_set import DeviceSet
from simplace.executor.control_flow import control_flow
from simplace.executor.step_options import Threads
from simplace.partition.graph_partition import PartitionedGraph, partition_graph
from simplace.pipeline import place_program
from simplace.placement.placement import Placement
from tests.lowering.worlds import DEVICES, TABLE, session_program

__all__ = ["Costs", "control_flow", "order", "parts", "placed", "run", "simulate_step", "ticks"]
MS = 1_000_000


@dataclass(frozen=True)
class Costs:
    """Cost each kernel what its name says, in ms; GPU kernels launch in `launch` ms, copies take `copy` ms.

    GPU kernels are bound by latency with `small`; those of `more` launch for so many ms when the device has begun,
    and wait for the host for half of them.
    """

    times: dict[str, float] = field(default_factory=dict)
    default: float = 1.0
    launch: float = 0.0
    copies: float = 1.0
    collectives: float = 1.0
    shards: dict[str, int] = field(default_factory=dict)
    overheads: Overheads = field(default_factory=Overheads)
    clock: float = 2e9
    name: str = "by name"
    limit: int = 0
    small: bool = False
    more: dict[str, float] = field(default_factory=dict)
    peer_way: PeerWay = "pcie"
    peer_link: str = ""

    def kernel(self, call: OpCall) -> KernelCost:
        if call.op in ("Placeholder", "Const", "NoOp", "Identity", "Switch", "Merge", "Enter", "Exit", "NextIteration",
                       "LoopCond"):  # fmt: skip
            return KernelCost(0.0)
        time = self.times.get(call.name, self.default) / 1000
        shards = self.shards.get(call.name, 1)
        if call.device_type == "GPU":
            more = self.more.get(call.name, 0.0) / 1000
            bound: Bound | None = "latency" if self.small else None
            return KernelCost(self.launch / 1000, time, shards, bound=bound, later_s=more, waits_s=more / 2)
        return KernelCost(time, shards=shards)

    def copy(self, size: int, source: str, target: str) -> float:
        return 0.0 if source == target == "CPU" else self.copies / 1000

    def assume_reliability(self, what: Fixed) -> Reliability:
        return Reliability("guessed", 0.25 if what == "copy" else 0.5)

    def collective(self, call: CollectiveCall) -> KernelCost:
        return KernelCost(self.launch / 1000 if call.device_type == "GPU" else 0.0, self.collectives / 1000)

    def memory(self, device_type: str) -> int:
        return self.limit if device_type == "GPU" else 0


def placed(text: str, devices: DeviceSet = DEVICES) -> Placement:
    """Place a session's graph on a CPU and two GPUs; @c, @g0 and @g1 name them."""
    for short, full in (("@c", "@/device:CPU:0"), ("@g0", "@/device:GPU:0"), ("@g1", "@/device:GPU:1")):
        text = text.replace(short, full)
    placement = place_program(session_program(text), devices, TABLE)
    assert placement.refusal is None, placement.refusal
    return placement


def parts(text: str) -> PartitionedGraph:
    return partition_graph(placed(text).placed)


def run(text: str, costs: Costs | None = None, devices: DeviceSet = DEVICES, **settings: object) -> Schedule:
    return schedule_placement(placed(text, devices), costs=costs or Costs(), **settings)  # type: ignore[arg-type]


def ticks(done: Schedule) -> list[str]:
    """List what took time: track, node, start and end in ms, by start, then track."""
    trace, nodes = done.trace, done.estimated.graph.nodes
    spans = sorted((s for s in trace.spans if s.duration), key=lambda s: (s.start, s.track))
    return [f"{trace.tracks[s.track].name}: {nodes[s.node].name} {s.start / MS:g}-{s.end / MS:g}" for s in spans]


def order(done: Schedule) -> str:
    """Name the ops that took time on a thread, in the order of their start."""
    nodes = done.estimated.graph.nodes
    spans = [s for s in done.trace.spans if s.duration and s.kind in ("op", "launch")]
    return " ".join(nodes[s.node].name for s in spans)


def threads(**settings: int) -> Threads:
    return Threads(**settings)  # type: ignore[arg-type]


def simulate_step(folder: Path, program: str) -> Schedule:
    """Simulate the largest step of a program of TensorFlow, given as text, on one GPU."""
    script = folder / "model.py"
    script.write_text(dedent(program))
    return schedule_placement(simplace.place(str(script), "cpu:1,gpu:1").largest().placement, costs="modelled")
