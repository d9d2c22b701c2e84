"""The one door: what the library and the command line call, and the results that print, draw and export themselves.

Its functions and methods import what they need when they are called: a command that prints a summary waits for no
drawing, and for no simulation. `Simulated`, `Memory` and `Diff` are imported when they are first named.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from simplace import targets
from simplace.machine.machine_file import parse_machine
from simplace.progress import Stage
from simplace.result import Placed, Result
from simplace.targets import Settings

if TYPE_CHECKING:
    from simplace.api.differences import Diff
    from simplace.api.fitting import Memory
    from simplace.api.measuring import RealSteps
    from simplace.api.simulated import Simulated
    from simplace.api.suggesting import Suggested
    from simplace.costs.recorded_costs import RecordedCosts
    from simplace.executor.step_options import StepKeywords, StepOptions
    from simplace.explain.finding import Finding
    from simplace.measure.measurement import MeasureOptions
    from simplace.placement.placement import Placement
    from simplace.program.program import Pin, Program
    from simplace.views.figures.drawing import Picture


__all__ = [
    "Diff", "Memory", "PlaceKeywords", "Placements", "Settings", "Simulated", "check", "diff", "measure_costs",
    "measure_steps", "place", "place_program", "schedule", "settings", "suggest",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name == "Simulated":
        from simplace.api.simulated import Simulated

        return Simulated
    if name == "Memory":
        from simplace.api.fitting import Memory

        return Memory
    if name == "Diff":
        from simplace.api.differences import Diff

        return Diff
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class PlaceKeywords(TypedDict, total=False):
    """Type what the functions of the library take besides the target; see `simplace.place`."""

    arguments: Sequence[str]
    visible: str | None
    calls: int
    timeout: float | None
    kernels: str
    tensorflow: str
    jit: bool
    allocations: bool


class SuggestKeywords(PlaceKeywords, total=False):
    """Type what `simplace.suggest` takes besides: `cpu` is that of `StepOptions`."""

    cpu: str


class SettingKeywords(TypedDict, total=False):
    """Type the fields of `Settings` that are not the machine's."""

    soft_placement: bool | None
    arguments: Sequence[str]
    calls: int
    timeout: float | None
    kernels: str
    tensorflow: str
    jit: bool
    stdout: int | None
    allocations: bool
    stage: Stage


def settings(devices: str | None = None, visible: str | None = None, **chosen: Unpack[SettingKeywords]) -> Settings:
    """Return the settings of one call, on the machine that the user describes or that this computer is."""
    found, note = parse_machine(devices, visible, os.environ)
    return Settings(found, note, **chosen)


def place(target: str, settings: Settings) -> Placements:
    """Place every program of a target; a script is run once under TensorFlow, and its log compared with.

    Raises a `SimplaceError` for whatever the user can fix.
    """
    return targets.place_target(target, settings, Placements)


def check(target: str, settings: Settings, log: str = "") -> Placements:
    """Place every program of a target and let TensorFlow place it too, files included.

    With the file `log`, a placement log, the placements are compared with its lines instead.
    """
    if not log:
        return targets.check_target(target, settings, Placements)
    from simplace.oracle.placement_log import read_log

    lines = read_log(log)  # refuses before anything runs
    return targets.compare_with_log(place(target, settings), lines)


def place_program(program: Program, settings: Settings, unchecked: str) -> Placements:
    """Place a program that was read from somewhere else; `unchecked` is why TensorFlow is not asked."""
    return place_programs(program.name, [program], settings, unchecked)


def place_programs(target: str, programs: Sequence[Program], settings: Settings, unchecked: str) -> Placements:
    """Do the same for programs that come from one place, `target`."""
    return targets.place_programs(target, programs, settings, Placements, unchecked)


def schedule(placement: Placement, options: StepOptions) -> Simulated:
    """Simulate when each op of a placement runs."""
    from simplace.api.simulated import Simulated

    return Simulated.of(placement, options)


def measure_steps(target: str, options: MeasureOptions) -> RealSteps:
    """Run real steps of a target on this computer's CPU; see `simplace.measure_steps`."""
    from simplace.api import measuring

    return measuring.measure_steps(target, options)


def measure_costs(target: str, placed: Placed, chosen: StepOptions, options: MeasureOptions) -> RecordedCosts:
    """Measure a placed program of a target; return its times as costs, for a schedule with the options `chosen`."""
    from simplace.api import measuring

    return measuring.measure_costs(target, placed, options, chosen.gpu, chosen.memory_fraction, chosen.cpu)


def suggest(
    target: str,
    settings: Settings,
    options: StepOptions,
    seconds: float = 60.0,
    program: str = "",
    trial_timeout: float | None = None,
) -> Suggested:
    """Search for changes of a script that make a step of it faster; see `simplace.suggest`.

    A changed program may run for `trial_timeout` seconds, by default three times as long as it took as it was.
    """
    from simplace.api.suggesting import suggest_changes

    return suggest_changes(target, settings, Placements, options, seconds, program, trial_timeout)


def diff(
    before: Placements,
    after: Placements | None = None,
    pins: Sequence[Pin] = (),
    soft_placement: bool | None = None,
    tensorflow: str = "",
) -> Diff:
    """Compare two results, or one with what it would be under suppositions; see `simplace.diff`."""
    from simplace.api.differences import Diff

    other = before if after is None else after
    if pins or soft_placement is not None or tensorflow:
        from simplace.changes.what_if import suppose_changes

        other = suppose_changes(other, pins, soft_placement, tensorflow)
    return Diff(before, other)


def _grows(result: Result) -> bool:
    """Return whether a run took GPU memory as it was needed, which the environment decides before the program."""
    forced = os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH", "")
    return forced == "true" or (forced != "false" and any(fact.kind == "memory growth" for fact in result.python))


class Placements(Result):
    """Record of a target's placements, with methods to print, draw and export them; a notebook shows a page."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-ready data (schema simplace/placement/1)."""
        from simplace.api.simulated_step import find_simulated
        from simplace.exports import json_report

        return json_report.report_result(self, find_simulated(self, only_cheap=True))

    def figure(
        self,
        figure: str = "overview",
        *,
        style: str = "screen",
        program: str | None = None,
        nodes: int | None = None,
        **options: Unpack[StepKeywords],
    ) -> Picture:
        """Return a figure of one program (the largest by default) as a picture, which a notebook shows.

        `figure` is "overview", "placement", "partition" or "colocation", in at most `nodes` boxes, or of a simulated
        run "timeline", "parallelism" or "memory", whose `options` are those of `simplace.schedule`; "eager" shows what
        ran outside of functions, as does the overview of a program that has nothing else. `style` is "screen", "paper",
        "slide" or "dark". Raises `simplace.errors.DrawingError`.
        """
        from simplace.views.figures.drawing import Picture, choose_figure, fit_boxes, style_of
        from simplace.views.figures.eager_figure import EAGER, draws_eager_ops, eager_figure
        from simplace.views.figures.placed_figures import CHARTS, FIGURES

        name = choose_figure(figure, (*FIGURES, EAGER, *CHARTS))
        most = style_of(style).boxes
        if not program and draws_eager_ops(self, name):
            draw = partial(eager_figure, self)
            return Picture(fit_boxes(draw, style, most) if nodes is None else draw(nodes), style)
        placed = self._one(program)
        if name in CHARTS:
            return self.schedule(program, **options).figure(name, style=style)
        make = partial(FIGURES[name], placed)
        return Picture(fit_boxes(make, style, most) if nodes is None else make(nodes), style)

    def draw(
        self,
        file: str | Path,
        figure: str = "overview",
        *,
        style: str = "screen",
        program: str | None = None,
        nodes: int | None = None,
        overwrite: bool = False,
        **options: Unpack[StepKeywords],
    ) -> None:
        """Draw what `figure` returns to an .svg, .png, .pdf or .dot file. Raises `simplace.errors.DrawingError`.

        A file that simplace did not write is replaced only with `overwrite`.
        """
        self.figure(figure, style=style, program=program, nodes=nodes, **options).save(file, overwrite)

    def schedule(self, program: str | None = None, **options: Unpack[StepKeywords]) -> Simulated:
        """Simulate when each op of one program (the largest by default) runs; see `simplace.schedule`.

        Without `gpu_memory_fraction` that of the program's sessions holds.
        """
        from simplace.analysis.session_memory import use_memory_fraction
        from simplace.api.simulated import Simulated
        from simplace.executor.step_options import StepOptions

        chosen = use_memory_fraction(StepOptions(**options), self.python)
        return Simulated.of(self._one(program).placement, chosen)

    def memory(self, program: str | None = None, **options: Unpack[StepKeywords]) -> Memory:
        """Return whether a step of a program (the largest by default) fits in memory, and the largest batch that does.

        The options are those of `schedule`: `gpu` names the GPU, `batch` is another batch than the program's own. Where
        the run told what was allocated before the program's first call, its first two steps are simulated. Without
        `gpu_memory_fraction` that of the program's sessions holds.
        """
        from simplace.analysis.batch_memory import BatchMemory
        from simplace.analysis.schedule import Schedule
        from simplace.analysis.session_memory import find_memory_fraction, use_memory_fraction
        from simplace.api import host_memory
        from simplace.api.fitting import Memory
        from simplace.executor.step_options import StepOptions

        placed = self._one(program)
        others = [each.placement.program for each in self.programs if each is not placed]
        chosen: StepKeywords = {**options}
        before = () if options.get("batch") else host_memory.find_allocations(self, placed)
        if before:
            chosen = {"warm": False, "steps": 2, **options}
        fraction = find_memory_fraction(self.python) if options.get("gpu_memory_fraction") is None else None
        chosen["limits"] = {**host_memory.find_limits(placed, os.environ), **options.get("limits", {})}
        step = use_memory_fraction(StepOptions(**chosen), self.python)
        schedule = Schedule.of(placed.placement, step)
        if not before and (batches := BatchMemory.of(schedule)).has_folded:
            schedule = Schedule.of(placed.placement, replace(step, unfolded=batches.batch))
        found = host_memory.describe_before(schedule, before)
        return Memory.of(schedule, others, options.get("batch", 0), grows=_grows(self), before=found, fraction=fraction)

    def diagnose(self) -> tuple[Finding, ...]:
        """Return what `simplace doctor` finds, what costs most first: likely mistakes, failures to come and costs."""
        from simplace.analysis.memory_failures import find_out_of_memory
        from simplace.api.simulated_step import find_simulated
        from simplace.doctor.examinations import diagnose_result
        from simplace.importers.target import parse_target

        is_saved = parse_target(self.target).kind != "script"
        simulated = [*find_out_of_memory(placed.placement for placed in self), *find_simulated(self)]
        return diagnose_result(self, is_saved=is_saved, environment=os.environ, simulated=simulated)

    def report(
        self,
        file: str | Path,
        *,
        program: str | None = None,
        schedule: bool = True,
        source: bool = True,
        overwrite: bool = False,
        **options: Unpack[StepKeywords],
    ) -> None:
        """Write what `simplace report` does: one interactive HTML page, which needs no network.

        It has all programs or the one called `program`; `schedule` False leaves the simulated step and the costs out,
        `source` False the lines of your files; `options` are those of `schedule`. A file that simplace did not write is
        replaced only with `overwrite`. Raises `simplace.errors.SimplaceError`.
        """
        from simplace.executor.step_options import StepOptions
        from simplace.report import page_file

        simulation = StepOptions(**options) if schedule else None
        page_file.check_page_name(file, simulation, overwrite)
        chosen = self.only(program) if program else self
        page_file.write_page_file(chosen, file, simulation, overwrite, has_source=source)

    def __str__(self) -> str:
        from simplace.views.text import summary

        return f"{summary.write_summary(self)}\n\n{summary.agreement_line(self)}"

    def __repr__(self) -> str:
        from simplace.views.text.quantities import format_count
        from viz.names import visible

        count = f"{format_count(len(self.programs), 'program')}, {len(self.nodes):,} nodes"
        return visible(f"<{self.target} on {self.devices}: {count}>")

    def _one(self, program: str | None) -> Placed:
        return self.program(program) if program else self.largest()

    def _repr_html_(self) -> str:
        from simplace.report.notebook_frame import write_notebook_html

        return write_notebook_html(self)
