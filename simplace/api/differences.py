"""What differs between two results, which prints, draws and exports itself."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from simplace.analysis.step_times import UNCHANGED, StepTimes, step_times
from simplace.changes.placement_changes import Changes
from simplace.errors import DrawingError
from simplace.executor.step_options import StepKeywords, StepOptions

if TYPE_CHECKING:
    from simplace.views.figures.drawing import Picture


class Diff(Changes):
    """Record of what differs between two results that prints, draws and exports itself."""

    def step_times(self, **options: Unpack[StepKeywords]) -> list[StepTimes]:
        """Simulate a step of both placements of each program; the options are those of `simplace.schedule`.

        A program that the change leaves as it is has no times, unless its devices share other links.
        """
        chosen = StepOptions(**options)
        return [
            step_times(change.before.placement, change.after.placement, chosen)
            if change.differs or change.before.placement.devices.links != change.after.placement.devices.links
            else UNCHANGED
            for change in self.programs
        ]

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-ready data (schema simplace/diff/1)."""
        from simplace.exports import change_report

        return change_report.report_changes(self, self.step_times())

    def figure(
        self, figure: str = "changes", *, style: str = "screen", program: str | None = None, nodes: int | None = None
    ) -> Picture:
        """Return a figure of one program (that in which most nodes moved by default) as a picture, for a notebook.

        `figure` is "changes", the overview of the second placement with what changed marked, "detail", the same
        with ops and scopes, or "side-by-side"; see `Placements.figure`.
        """
        from simplace.views.figures.change_figure import FIGURES
        from simplace.views.figures.drawing import Picture, choose_figure, fit_boxes, style_of

        name = choose_figure(figure, FIGURES)
        limit = style_of(style).boxes if nodes is None else nodes
        found = [change for change in self.programs if program in (None, change.name, change.title)]
        if not found:
            raise DrawingError(f"nothing to draw: the two have no program {program or ''} in common")
        change = max(found, key=lambda one: (len(one.moves), one.compared))
        make = partial(FIGURES[name], change)
        return Picture(make(limit) if nodes is not None else fit_boxes(make, style, limit), style)

    def draw(
        self,
        file: str | Path,
        figure: str = "changes",
        *,
        style: str = "screen",
        program: str | None = None,
        nodes: int | None = None,
        overwrite: bool = False,
    ) -> None:
        """Draw what `figure` returns to an .svg, .png, .pdf or .dot file. Raises `simplace.errors.DrawingError`.

        A file that simplace did not write is replaced only with `overwrite`.
        """
        self.figure(figure, style=style, program=program, nodes=nodes).save(file, overwrite)

    def __str__(self) -> str:
        from simplace.views.text.change_summary import change_summary

        return change_summary(self, self.step_times())

    def __repr__(self) -> str:
        from simplace.views.text.quantities import format_count
        from viz.names import visible

        moves = sum(len(change.moves) for change in self.programs)
        return visible(f"<{self.before.target} and {self.after.target}: {format_count(moves, 'node')} moved>")

    def _repr_html_(self) -> str:
        from simplace.views import notebook

        return notebook.changes_html(self, self.step_times())
