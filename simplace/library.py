"""simplace as a library: what `simplace.place` and `simplace.check` do and return."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from simplace import targets
from simplace.changes import Changes, compare_results
from simplace.errors import DrawingError
from simplace.exports import change_report
from simplace.exports.json_report import report
from simplace.machine_file import machine
from simplace.result import Result
from simplace.scheduling import schedule
from simplace.step_times import StepTimes, step_times
from simplace.views import change_figure, drawing
from simplace.views.change_summary import change_summary
from simplace.views.notebook import html
from simplace.views.placed_figures import CHARTS, FIGURES
from simplace.what_if import read_pin, suppose


class Placements(Result):
    """Hold what a target's placements are, and export themselves; a notebook shows them as a page."""

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-ready data (schema simplace/placement/1)."""
        return report(self)

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
        """Draw one program (the largest by default) to an .svg, .png, .pdf or .dot file.

        `figure` is "placement", "partition" or "colocation", in at most `nodes` boxes, or of a simulated run
        "timeline" or "memory", whose `options` are those of `simplace.schedule`. `style` is "screen", "paper", "slide"
        or "dark". Raises `simplace.errors.DrawingError`.
        """
        name = drawing.chosen(figure, (*FIGURES, *CHARTS))
        limit = drawing.style_of(style).boxes if nodes is None else nodes
        placed = self.program(program) if program else max(self.programs, key=lambda one: len(one.placement.decisions))
        if name in CHARTS:
            drawing.write(CHARTS[name](schedule(placed.placement, **options)), file, style)
            return
        drawing.write(FIGURES[name](placed, limit), file, style)

    def _repr_html_(self) -> str:
        return html(self)


class Diff(Changes):
    """Hold what differs between two results, print it, and export itself."""

    def step_times(self, **options: Any) -> list[StepTimes]:
        """Simulate a step of both placements of each program; the options are those of `simplace.schedule`."""
        return [step_times(change, **options) for change in self.programs]

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-ready data (schema simplace/diff/1)."""
        return change_report.report(self, self.step_times())

    def draw(
        self,
        file: str | Path,
        figure: str = "changes",
        *,
        style: str = "screen",
        program: str | None = None,
        nodes: int | None = None,
    ) -> None:
        """Draw one program (that in which most nodes moved by default) to an .svg, .png, .pdf or .dot file.

        `figure` is "changes", the second placement with what changed marked, or "side-by-side"; see `Placements.draw`.
        """
        name = drawing.chosen(figure, change_figure.FIGURES)
        limit = drawing.style_of(style).boxes if nodes is None else nodes
        found = [change for change in self.programs if program in (None, change.name)]
        if not found:
            raise DrawingError(f"nothing to draw: the two have no program {program or ''} in common")
        change = max(found, key=lambda one: (len(one.moves), one.compared))
        drawing.write(change_figure.FIGURES[name](change, limit), file, style)

    def __str__(self) -> str:
        return change_summary(self, self.step_times())


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
