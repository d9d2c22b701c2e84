"""Measure a graph, a SavedModel or a script's function on this computer's CPU, in a child process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from math import inf
from pathlib import Path
from statistics import fmean, median
from typing import Any, TypeVar

from simplace.costs.calibrated_cpu import CalibratedCpu
from simplace.costs.calibration import Sharing
from simplace.costs.cpu_calibration import derive_cpu
from simplace.errors import TargetError, join_choices
from simplace.graph import graph_def
from simplace.importers.target import GRAPH_SUFFIXES, Target, parse_target
from simplace.oracle.launch import ask_child
from simplace.oracle.scratch import scratch_folder
from simplace.program.observation import EarlyEnd
from simplace.program.program import Program

_QUIET = 0.05  # of a step: where its threads waited longer than that for a core, something else disturbed it
_STEADY = 0.15  # how much slower the machine may be than at the undisturbed pace
_AWAKE = 150_000  # nanoseconds: waking a thread takes less
_LEAST, _QUARTER = 5, 4  # steps to keep, however disturbed, or of so many one
_FAST = 10  # a machine is undisturbed in one of so many steps at least


@dataclass(frozen=True, slots=True)
class NodeRun:
    """Record of when a node ran, in nanoseconds: its kernel, and the whole with the executor's bookkeeping.

    `scheduled` is when the executor decided that it was ready. The trace's label of it has `label` bytes, with `names`
    long names in it: its own, and those of its inputs.
    """

    name: str
    kernel_start: int
    kernel_end: int
    start: int
    end: int
    scheduled: int = 0
    label: int = 0
    names: int = 0


@dataclass(frozen=True)
class MeasuredStep:
    """Record of one traced step: its nodes by start.

    `delay` is how long the process's threads waited for a core of the machine meanwhile, in nanoseconds: 0 on a quiet
    machine with enough cores. `untraced` is the wall time of a step beside it that was not traced.
    `pace` is how fast the machine was meanwhile: nanoseconds of the executor's bookkeeping of one node of a small
    graph; 0 where that was not measured. `sharing` is what a second busy thread cost just before and just after; ()
    on one thread, or where that was not measured. `expensive` names the nodes that the executor took to be expensive at
    that time.
    """

    runs: tuple[NodeRun, ...]
    delay: int = 0
    untraced: int = 0
    pace: float = 0.0
    sharing: tuple[Sharing, ...] = ()
    expensive: frozenset[str] = frozenset()

    @cached_property
    def stall(self) -> int:
        """Return for how long no node ran, in nanoseconds, counting only what is longer than waking a thread takes.

        Something is always ready in a step. The machine below a virtual one may be slow to give it back a core that was
        idle.
        """
        ends = accumulate((run.end for run in self.runs), max)
        pauses = (after.start - end for end, after in zip(ends, self.runs[1:], strict=False))
        return sum(pause for pause in pauses if pause > _AWAKE)

    @cached_property
    def absence(self) -> int:
        """Return for how long one thread ran at most though a node waited for another one, in nanoseconds.

        As in `stall`, only what is longer than waking a thread takes: the machine below had taken its core away. Says
        something of steps on several threads only.
        """
        alone = [(start, end) for start, end in self._list_times_alone() if end - start > _AWAKE]
        waits = [
            (run.scheduled, run.start) for run in self.runs if run.scheduled and run.start - run.scheduled > _AWAKE
        ]
        found = sorted((max(start, since), min(end, until)) for start, end in alone for since, until in waits)
        total = last = 0
        for start, end in found:
            if end - start > _AWAKE:
                total += max(0, end - max(start, last))
                last = max(last, end)
        return total

    def _list_times_alone(self) -> Iterator[tuple[int, int]]:
        """Yield from when to when one node ran at most, in nanoseconds."""
        changes = sorted([*((run.start, 1) for run in self.runs), *((run.end, -1) for run in self.runs)])
        since, running = changes[0][0], 0
        for time, change in changes:
            running += change
            if (running, change) == (2, 1):
                yield since, time
            elif (running, change) == (1, -1):
                since = time
        yield since, changes[-1][0]

    def measure_slowness(self, pace: float) -> float:
        """Return by how much of an undisturbed `pace` the machine was slower; 0 where either is unknown."""
        return max(0.0, self.pace / pace - 1) if self.pace and pace else 0.0

    @property
    def span(self) -> int:
        """Return the time from the first start to the last end, in nanoseconds."""
        return max(run.end for run in self.runs) - min(run.start for run in self.runs)

    @property
    def seconds(self) -> dict[str, float]:
        """Map each node to the time it held its thread, bookkeeping included; the mean over iterations of a loop."""
        return {name: fmean(found) for name, found in self.seconds_of_runs.items()}

    @property
    def seconds_of_runs(self) -> dict[str, tuple[float, ...]]:
        """Map each node to the times it held its thread, by start: one for each iteration of a loop."""
        times: dict[str, list[int]] = {}
        for run in self.runs:
            times.setdefault(run.name, []).append(run.end - run.start)
        return {name: tuple(time / 1e9 for time in found) for name, found in times.items()}

    @property
    def kernel_seconds(self) -> dict[str, float]:
        """Map each node to the time of its kernel alone; the mean over iterations of a loop."""
        times: dict[str, list[int]] = {}
        for run in self.runs:
            times.setdefault(run.name, []).append(run.kernel_end - run.kernel_start)
        return {name: fmean(found) / 1e9 for name, found in times.items()}

    @property
    def gap(self) -> float:
        """Return the median time between two nodes, in seconds; with one inter-op thread that is bookkeeping."""
        gaps = [after.start - before.end for before, after in pairwise(self.runs)]
        return max(0.0, median(gaps) / 1e9) if gaps else 0.0

    @property
    def order(self) -> list[str]:
        """List the nodes by start."""
        return [run.name for run in self.runs]


@dataclass(frozen=True)
class Measurement:
    """Record of the traced steps of one thread setting.

    `held` are as many again and one more, run later in the same session while the executor's moving averages hold
    still: the same ops are expensive in all of them. Tracing these takes longer, so only their order counts.
    `edge_order` has the nodes by start in a step that the caller's thread ran alone: it shows the order of more than
    eight edges of a node, which is a session's own. `pace` is that of the machine while nothing disturbs it, 0 where
    that was not measured.
    """

    tensorflow: str
    inter_op: int
    intra_op: int
    steps: tuple[MeasuredStep, ...]
    held: tuple[MeasuredStep, ...]
    edge_order: tuple[str, ...] = ()
    pace: float = 0.0

    @cached_property
    def quiet_steps(self) -> tuple[MeasuredStep, ...]:
        """Return the steps that nothing disturbed, or the least disturbed ones where there are few of those.

        What a delay or a stall adds to a step no simulation knows; a slow machine is one of another pace. So the
        delayed steps are the last to be taken.
        """
        return self._choose_steps(_STEADY)

    @cached_property
    def undelayed_steps(self) -> tuple[MeasuredStep, ...]:
        """Return the steps that nothing delayed, however slow the machine was, or the least delayed ones."""
        return self._choose_steps(inf)

    def measure_delay(self, step: MeasuredStep) -> float:
        """Return the share of a step for which a thread had no core, though there was something to run."""
        idle = step.stall if self.inter_op in (1, -1) else max(step.stall, step.absence)
        return (step.delay + idle) / step.span

    def _choose_steps(self, steady: float) -> tuple[MeasuredStep, ...]:
        """Return the steps without delay on a machine that was not slower than undisturbed by more than a share."""
        rated = [self._rate_disturbance(step) for step in self.steps]
        order = sorted(range(len(self.steps)), key=rated.__getitem__)
        quiet = sum(rate <= (0.0, steady) for rate in rated)
        return tuple(self.steps[i] for i in sorted(order[: max(quiet, _LEAST, len(self.steps) // _QUARTER)]))

    def _rate_disturbance(self, step: MeasuredStep) -> tuple[float, float]:
        """Return the delay of a step beyond what is quiet, then by how much the machine was slower."""
        delayed, slowness = self.measure_delay(step), step.measure_slowness(self.pace)
        return (delayed if delayed > _QUIET else 0.0), slowness

    @property
    def seconds(self) -> dict[str, float]:
        """Map each node to the median of its times over the quiet steps, or over all where it ran in none of those."""
        return self._take_medians(lambda step: step.seconds)

    @cached_property
    def kernels(self) -> dict[str, float]:
        """Map each node to the median of its kernel's times, in seconds, over the same steps."""
        return self._take_medians(lambda step: step.kernel_seconds)

    @property
    def gap(self) -> float:
        """Return the median time between two nodes, in seconds; 0 for several threads, where it says nothing."""
        return median(step.gap for step in self.quiet_steps) if self.inter_op == 1 else 0.0

    def _take_medians(self, read: Callable[[MeasuredStep], Mapping[str, float]]) -> dict[str, float]:
        """Return the median of each node's times over the quiet steps, or over all where none of those has it."""
        medians: dict[str, float] = {}
        for steps in (self.steps, self.quiet_steps):
            found = [read(step) for step in steps]
            names = sorted({name for one in found for name in one})
            medians |= {name: median(one[name] for one in found if name in one) for name in names}
        return medians


@dataclass(frozen=True)
class Measured:
    """Record of all that one child measured: the graph that ran, and its steps per thread setting.

    `program` is the target's own graph for a file without placeholders, else that graph with constants and variables in
    the place of its inputs; `remarks` describe these. `targets` are the nodes that a step is run for: a session prunes
    what they do not need. `probes` are the steps of the small graphs that `calibration.derive_overheads` reads, by
    name, {} where they were not asked for. `cpu` has what this computer's CPU reaches, None where
    that was not asked for.
    """

    program: Program
    settings: tuple[Measurement, ...]
    targets: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    probes: Mapping[str, tuple[MeasuredStep, ...]] = field(default_factory=dict)
    cpu: CalibratedCpu | None = None

    @property
    def pace(self) -> float:
        """Return the pace of the machine while nothing disturbs it, 0 where that was not measured."""
        return self.settings[0].pace


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """Record of what steps to run, and how.

    `settings` are pairs (inter-op, intra-op), one after the other; `steps` of each are traced after `warm_up` others.
    `arguments` are a script's, `cpus` how many CPU devices TensorFlow has, `batch` stands for an unknown first
    dimension, `timeout` is in seconds. `onednn` lets TensorFlow use oneDNN's kernels, as it does by default on x86: its
    layout pass then makes those nodes anew in another order (reverse post-order), which changes the order of execution
    too. With `probes` the executor's fixed times are measured beside, and how fast the machine is at each step;
    with `calibrates`, what its CPU reaches, which takes some seconds.
    """

    settings: Sequence[tuple[int, int]] = ((1, 1),)
    arguments: Sequence[str] = ()
    cpus: int = 1
    warm_up: int = 3
    steps: int = 10
    batch: int = 32
    onednn: bool = False
    probes: bool = False
    calibrates: bool = False
    timeout: float = 300.0


M = TypeVar("M", bound=Measured)  # the class of what was measured


def measure_target(target: str | Path, options: MeasureOptions, kind: type[M]) -> M:
    """Run a graph file, a SavedModel or a script's function; return its traced steps, as a record of class `kind`.

    The target is "model.py", "model.py:function", "directory", "directory:signature" or a .pb, .pbtxt or .graphdef
    file; without a name the largest function is taken. A function runs with the inputs of its first call in the
    program, a signature or a placeholder with random numbers of its declared shape.

    Raises `TargetError` for other targets and `ProgramError` where TensorFlow could not run it.
    """
    parsed = _parse_measurable(str(target))
    with scratch_folder() as scratch:
        request, answer, graph = (Path(scratch, name) for name in ("request.json", "answer.json", "graph.pb"))
        wanted = {**asdict(options), "path": str(parsed.path), "kind": parsed.kind, "function": parsed.function}
        wanted |= {"answer": str(answer), "graph": str(graph)}
        request.write_text(json.dumps(wanted), encoding="utf-8")
        ask_child(
            "simplace.measure.child.process",
            request,
            options.timeout,
            slow=f"{target}: TensorFlow did not finish within {options.timeout:g} s; measure fewer steps",
            failed=f"{target}: TensorFlow could not run it",
        )
        values = json.loads(answer.read_text(encoding="utf-8"))
        if "refused" in values:
            raise TargetError(f"{target}: {values['refused']}")
        if "failure" in values:
            raise EarlyEnd(**values["failure"]).make_error(str(target))
        program = Program(
            values["name"], "graph", graph_def.parse_graph_def(graph.read_bytes(), is_ours=True), soft_placement=True
        )
    traced = [tuple(_read_step(step) for step in own["steps"]) for own in values["settings"]]
    paces = sorted(step.pace for steps in traced for step in steps if step.pace)
    pace = paces[len(paces) // _FAST] if paces else 0.0
    found = tuple(
        Measurement(
            values["tensorflow"],
            inter_op,
            intra_op,
            steps,
            tuple(_read_step(step) for step in own["held"]),
            tuple(own["edge_order"]),
            pace,
        )
        for (inter_op, intra_op), steps, own in zip(options.settings, traced, values["settings"], strict=True)
    )
    seen = {name: tuple(_read_step(step) for step in own) for name, own in values["probes"].items()}
    cpu = derive_cpu(values["cpu"]) if values["cpu"] else None
    return kind(program, found, tuple(values["targets"]), tuple(values["remarks"]), seen, cpu)


def _parse_measurable(target: str) -> Target:
    parsed = parse_target(target, has_signatures=True)
    if parsed.kind == "keras" or parsed.path.suffix == ".meta":
        known = join_choices(suffix for suffix in GRAPH_SUFFIXES if suffix != ".meta")
        raise TargetError(f"{parsed.path}: cannot be measured; give a script, a SavedModel directory, or {known}")
    return parsed


def _read_step(values: dict[str, Any]) -> MeasuredStep:
    """Return a step; a held one has only its nodes, and a probe's no expensive ones."""
    numbers = {name: values[name] for name in ("delay", "untraced") if name in values}
    return MeasuredStep(
        tuple(NodeRun(*event) for event in values["events"]),
        pace=values.get("pace", 0.0),
        sharing=tuple(Sharing(*one) for one in values.get("sharing", ())),
        expensive=frozenset(values.get("expensive", ())),
        **numbers,
    )
