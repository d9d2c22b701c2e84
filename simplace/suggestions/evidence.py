"""What a simulated step says of the program's lines: which nodes each made, where they run, how long."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cached_property
from math import inf
from pathlib import Path

from simplace.analysis.schedule import Schedule
from simplace.analysis.step_memory import RELIABLE, StepMemory, list_uses
from simplace.costs.recorded_costs import RecordedCosts
from simplace.devices.device_set import Device
from simplace.doctor.failures import predict_failures
from simplace.graph.op_kinds import is_arg
from simplace.program.program import Program, Resource
from simplace.result import Placed, Result
from simplace.suggestions.estimated_step import Estimate, list_others, sum_missing
from simplace.suggestions.source_file import SourceFile, list_files

Line = tuple[Path, int]


@dataclass(frozen=True)
class Evidence:
    """Record of a run of a script: what was placed, the program whose step counts, its step.

    `texts` are the texts of files, by name, that the run took in place of those on disk. `copied` is the nanoseconds
    that copies of the next step's elements take beside a step. `is_slow` tells that a CPU takes far longer for the
    program than for that on disk.
    """

    script: str
    result: Result
    placed: Placed
    schedule: Schedule
    texts: Mapping[str, str] = field(default_factory=dict)
    copied: int = 0
    is_slow: bool = False

    @cached_property
    def files(self) -> tuple[SourceFile, ...]:
        """List the user's files that made ops or resources of the program, the script first."""
        program = self.placed.placement.program
        names = [note.at for notes in program.notes.values() for note in notes.values()]
        names += [note.device_at for notes in program.notes.values() for note in notes.values()]
        names += [resource.made_at for resource in program.resources.values()]
        own = dict.fromkeys([self.script, *(split_line(name)[0] for name in names if name)])
        found = list_files(iter(own), self.script)
        return tuple(replace(file, text=self.texts.get(file.name, file.text)) for file in found)

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """List the GPUs of the machine as a `tf.device` names them: "/GPU:0", "/GPU:1"."""
        return tuple(write_device(device) for device in self.placed.placement.devices if device.type == "GPU")

    @cached_property
    def cpu(self) -> str:
        """Return the first CPU device as a `tf.device` names it."""
        return next(write_device(device) for device in self.placed.placement.devices if device.type == "CPU")

    @cached_property
    def of_line(self) -> Mapping[Line, tuple[int, ...]]:
        """List the nodes of the placement that each of the user's lines made."""
        placement, found = self.placed.placement, defaultdict[Line, list[int]](list)
        for node in placement.decisions:
            if at := placement.notes(node).at:
                found[resolve_line(at)].append(node)
        return {line: tuple(nodes) for line, nodes in found.items()}

    @cached_property
    def of_scope(self) -> Mapping[Line, tuple[int, ...]]:
        """List the nodes of the placement whose device the `tf.device` of each of the user's lines requested."""
        placement, found = self.placed.placement, defaultdict[Line, list[int]](list)
        for node in placement.decisions:
            notes = placement.notes(node)
            if notes.device_at and not notes.is_by_library:
                found[resolve_line(notes.device_at)].append(node)
        return {line: tuple(nodes) for line, nodes in found.items()}

    @cached_property
    def variables(self) -> Mapping[int, Resource]:
        """Describe the variables that the program is given, by the argument that holds each."""
        placement, found = self.placed.placement, {}
        for node in placement.decisions:
            if is_arg(placement.graph.ops[node]):
                variable = placement.program.resources.get(placement.graph.attrs[node].get("index", -1))
                if variable is not None and variable.is_variable and variable.made_at:
                    found[node] = variable
        return found

    @cached_property
    def failing_rules(self) -> frozenset[str]:
        """Name the failures after placement that are predicted of the program as it ran."""
        return frozenset(failure.rule for failure in predict_failures(self.result))

    @cached_property
    def others(self) -> tuple[Program, ...]:
        """List the programs of the run besides the one whose step counts."""
        return tuple(list_others(self.result, self.placed))

    @cached_property
    def memory(self) -> StepMemory:
        """Return the memory of the step."""
        return StepMemory.of(self.schedule, self.others)

    @cached_property
    def estimate(self) -> Estimate:
        """Return what estimates of changed steps are compared with."""
        uses = list_uses(self.schedule, self.others, self.share)
        return Estimate(sum_missing(uses), self.schedule.trace.makespan)

    @property
    def has_recorded_costs(self) -> bool:
        """Return whether the times of ops are recorded, which hold only for the ops of this very graph."""
        return isinstance(self.schedule.estimated.model, RecordedCosts)

    @property
    def share(self) -> float:
        """Return the share of the memory that an estimated step may use."""
        return 1.0 if self.memory.fits else RELIABLE

    @cached_property
    def sizes(self) -> Mapping[int, int]:
        """Sum the bytes that each node of the placement holds at the peaks of the GPUs, with the variables it reads."""
        graph, found = self.schedule.estimated.graph, defaultdict[int, int](int)
        for use in self.memory.uses:
            for held in use.holders if "GPU" in use.device else ():
                found[graph.node_of_program(held.node)] += held.size
        return found

    @cached_property
    def times(self) -> Mapping[int, int]:
        """Sum the nanoseconds that threads, streams and links spend on each node of the placement."""
        graph, found = self.schedule.estimated.graph, defaultdict[int, int](int)
        for span in self.schedule.trace.spans:
            node = graph.node_of_program(span.node)
            if node >= 0:
                found[node] += span.duration
        return found

    @cached_property
    def element_time(self) -> int:
        """Sum the nanoseconds of copies to the first GPU of what the step is given on the CPU, but for variables."""
        graph, found = self.schedule.estimated.graph, 0
        for span in self.schedule.trace.spans:
            copy = graph.copies[graph.nodes[span.node].copy] if span.kind == "copy" else None
            if copy is not None and "CPU" in copy.source and copy.target.endswith("GPU:0"):
                origin = graph.rewritten.origin[copy.producer]
                is_given = origin >= 0 and is_arg(self.placed.placement.graph.ops[origin])
                found += span.duration if is_given else 0
        return found

    def time_of(self, nodes: Iterable[int]) -> int:
        """Sum the nanoseconds spent on some nodes."""
        return sum(self.times.get(node, 0) for node in nodes)

    def size_of(self, nodes: Iterable[int]) -> int:
        """Sum the bytes that some nodes hold at the peaks of the GPUs."""
        return sum(self.sizes.get(node, 0) for node in nodes)

    def find_room(self, nodes: Iterable[int]) -> float:
        """Return the bytes that each GPU has for some nodes beside all others, infinity where the step fits."""
        if self.memory.fits:
            return inf
        sizes = self.schedule.execution.limits
        limits = [self.share * sizes[device.name] for device in self.placed.placement.devices if device.type == "GPU"]
        return min((limit for limit in limits if limit), default=inf) - (sum(self.sizes.values()) - self.size_of(nodes))

    def nodes_of(self, source: SourceFile, first: int, last: int) -> list[int]:
        """List the nodes that lines `first` to `last` of a file made."""
        return [node for line in range(first, last + 1) for node in self.of_line.get((source.path, line), ())]

    def list_devices(self, nodes: Iterable[int]) -> Iterator[str]:
        """Name the devices of nodes as a `tf.device` does, each once, in the order of the machine's devices."""
        placement = self.placed.placement
        used = {placement.device(node) for node in nodes}
        return (write_device(device) for device in placement.devices if device.name in used)

    def pins(self, nodes: Iterable[int], device: str) -> dict[str, str]:
        """Return the pins that put nodes on a device; what the caller of a function gives it stays where it is."""
        graph = self.placed.placement.graph
        return {graph.names[node]: device for node in nodes if not is_arg(graph.ops[node])}

    def original_line(self, at: str) -> str:
        """Return where the line of a replaced text stands in the file on disk: "file:line"."""
        name, line = split_line(at)
        if name not in self.texts or (file := SourceFile.read(name)) is None:
            return at
        matcher = SequenceMatcher(None, self.texts[name].splitlines(), file.text.splitlines(), autojunk=False)
        for _, first, last, there, end in matcher.get_opcodes():
            if first <= line - 1 < last:
                return f"{name}:{min(there + line - 1 - first, max(end - 1, there)) + 1}"
        return at


def write_device(device: Device) -> str:
    """Return a device as a `tf.device` names it: "/GPU:0", or its full name where it is of a cluster."""
    return f"/{device.short}" if "/" not in device.short else device.name


def split_line(at: str) -> tuple[str, int]:
    """Split "file:line"."""
    name, _, line = at.rpartition(":")
    return name, int(line)


def resolve_line(at: str) -> Line:
    """Return the absolute path and the number of "file:line"."""
    name, line = split_line(at)
    return Path(name).resolve(), line
