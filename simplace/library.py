"""simplace as a library: what `simplace.place` and `simplace.check` do and return."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from simplace import targets
from simplace.changes import Changes, compare_results
from simplace.errors import DrawingError, SimplaceError
from simplace.exports import change_report, json_report, schedule_report
from simplace.machine_file import machine
from simplace.placement.placement import Placement
from simplace.report import page_file
from simplace.report.page import Simulation
from simplace.result import Placed, Result
from simplace.scheduling import Schedule, schedule
from simplace.step_times import StepTimes, step_times
from simplace.views import change_figure, drawing, notebook, schedule_tables, summary
from simplace.views.change_summary import change_summary
from simplace.views.drawing import Picture
from simplace.views.placed_figures import CHARTS, FIGURES
from simplace.views.quantities import plural
from simplace.what_if import read_pin, suppose


class Simulated(Schedule):
    """Hold a simulated run of one program, print it, and export itself; a notebook shows its tables and timeline."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-ready data (schema simplace/schedule/1)."""
        return schedule_report.report(self)

    def figure(self, figure: str = "timeline", *, style: str = "screen") -> Picture:
        """Return "timeline", "width" or "memory" as a picture, which a notebook shows."""
        return Picture(CHARTS[drawing.chosen(figure, CHARTS)](self), style)

    def draw(self, file: str | Path, figure: str = "timeline", *, style: str = "screen") -> None:
        """Draw such a figure to an .svg, .png, .pdf or .dot file; raise `simplace.errors.DrawingError`."""
        self.figure(figure, style=style).save(file)

    def __str__(self) -> str:
        return schedule_tables.summary(self)

    def __repr__(self) -> str:
        return f"<{schedule_tables.headline(self).splitlines()[0]}>"

    def _repr_html_(self) -> str:
        return notebook.schedule_html(self)


class Placements(Result):
    """Hold what a target's placements are, and export themselves; a notebook shows them as a page."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-ready data (schema simplace/placement/1)."""
        return json_report.report(self)

    def figure(
        self,
        figure: str = "placement",
        *,
        style: str = "screen",
        program: str | None = None,
        nodes: int | None = None,
        **options: Any,
    ) -> Picture:
        """Return a figure of one program (the largest by default) as a picture, which a notebook shows.

        `figure` is "placement", "partition" or "colocation", in at most `nodes` boxes, or of a simulated run
        "timeline", "width" or "memory", whose `options` are those of `simplace.schedule`. `style` is "screen", "paper",
        "slide" or "dark". Raises `simplace.errors.DrawingError`.
        """
        name = drawing.chosen(figure, (*FIGURES, *CHARTS))
        limit = drawing.style_of(style).boxes if nodes is None else nodes
        placed = self._one(program)
        if name in CHARTS:
            return simulate(placed.placement, **options).figure(name, style=style)
        return Picture(FIGURES[name](placed, limit), style)

    def draw(
        self,
        file: str | Path,
        figure: str = "placement",
        *,
        style: str = "screen",
        program: str | None = None,
        nodes: int | None = None,
        **options: Any,
    ) -> None:
        """Draw what `figure` returns to an .svg, .png, .pdf or .dot file. Raises `simplace.errors.DrawingError`."""
        self.figure(figure, style=style, program=program, nodes=nodes, **options).save(file)

    def schedule(self, program: str | None = None, **options: Any) -> Simulated:
        """Simulate when each op of one program (the largest by default) runs; see `simplace.schedule`."""
        return simulate(self._one(program).placement, **options)

    def report(
        self,
        file: str | Path,
        *,
        program: str | None = None,
        schedule: bool = True,
        gpu: str = "a100",
        cores: int = 2,
        batch: int = 32,
    ) -> None:
        """Write what `simplace report` does: one HTML page to look around in, which needs no network.

        It has all programs or the one called `program`; `schedule` False leaves the simulated step and the costs out,
        `gpu`, `cores` and `batch` say what it is simulated on. Raises `simplace.errors.SimplaceError`.
        """
        simulation = Simulation(gpu, cores, batch) if schedule else None
        page_file.check(file, simulation)
        page_file.write(self.only(program) if program else self, file, simulation)

    def __str__(self) -> str:
        return f"{summary.summary(self)}\n\n{summary.agreement_line(self)}"

    def __repr__(self) -> str:
        return f"<{self.target} on {self.devices}: {plural(len(self.programs), 'program')}, {len(self.nodes):,} nodes>"

    def _one(self, program: str | None) -> Placed:
        if program:
            return self.program(program)
        if not self.programs:
            raise SimplaceError(f"{self.target}: nothing was placed, so there is nothing to draw or run")
        return max(self.programs, key=lambda one: len(one.placement.decisions))

    def _repr_html_(self) -> str:
        return notebook.html(self)


class Diff(Changes):
    """Hold what differs between two results, print it, and export itself."""

    def step_times(self, **options: Any) -> list[StepTimes]:
        """Simulate a step of both placements of each program; the options are those of `simplace.schedule`."""
        return [step_times(change, **options) for change in self.programs]

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-ready data (schema simplace/diff/1)."""
        return change_report.report(self, self.step_times())

    def figure(
        self, figure: str = "changes", *, style: str = "screen", program: str | None = None, nodes: int | None = None
    ) -> Picture:
        """Return a figure of one program (that in which most nodes moved by default) as a picture, for a notebook.

        `figure` is "changes", the second placement with what changed marked, or "side-by-side"; see
        `Placements.figure`.
        """
        name = drawing.chosen(figure, change_figure.FIGURES)
        limit = drawing.style_of(style).boxes if nodes is None else nodes
        found = [change for change in self.programs if program in (None, change.name)]
        if not found:
            raise DrawingError(f"nothing to draw: the two have no program {program or ''} in common")
        change = max(found, key=lambda one: (len(one.moves), one.compared))
        return Picture(change_figure.FIGURES[name](change, limit), style)

    def draw(
        self,
        file: str | Path,
        figure: str = "changes",
        *,
        style: str = "screen",
        program: str | None = None,
        nodes: int | None = None,
    ) -> None:
        """Draw what `figure` returns to an .svg, .png, .pdf or .dot file. Raises `simplace.errors.DrawingError`."""
        self.figure(figure, style=style, program=program, nodes=nodes).save(file)

    def __str__(self) -> str:
        return change_summary(self, self.step_times())

    def __repr__(self) -> str:
        moves = sum(len(change.moves) for change in self.programs)
        return f"<{self.before.target} and {self.after.target}: {plural(moves, 'node')} moved>"

    def _repr_html_(self) -> str:
        return notebook.changes_html(self, self.step_times())


def simulate(placement: Placement, **options: Any) -> Simulated:
    """Simulate when each op of a placement runs; see `simplace.schedule`."""
    found = schedule(placement, **options)
    return Simulated(**{field.name: getattr(found, field.name) for field in fields(found)})


def diff(
    before: Result, after: Result | None, pins: dict[str, str], soft_placement: bool | None, tensorflow: str
) -> Diff:
    """Compare two results, or one with what it would be under suppositions; see `simplace.diff`."""
    other = before if after is None else after
    supposed = [read_pin(f"{pattern}={device}") for pattern, device in pins.items()]
    if supposed or soft_placement is not None or tensorflow:
        other = suppose(other, supposed, soft_placement, tensorflow)
    changes = compare_results(before, other)
    return Diff(**{field.name: getattr(changes, field.name) for field in fields(changes)})


def run(
    command: Callable[[str, targets.Settings], Result],
    target: str,
    devices: str | None,
    visible: str | None,
    **chosen: Any,
) -> Placements:
    """Place a target with `targets.place` or `targets.check`, on the machine that the user describes."""
    found, note = machine(devices, visible, os.environ)
    result = command(target, targets.Settings(found, **chosen)).with_devices_note(note)
    return Placements(**{field.name: getattr(result, field.name) for field in fields(result)})
