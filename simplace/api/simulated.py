"""A simulated step that prints, draws and exports itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from simplace.analysis.schedule import Schedule, compare_inter_op

if TYPE_CHECKING:
    from simplace.analysis.device_comparison import DeviceComparison
    from simplace.views.figures.drawing import Picture


class Simulated(Schedule):
    """Record of a simulated step of one program that prints and exports itself, in a notebook with its timeline."""

    def compare_inter_op(self, sizes: Sequence[int]) -> tuple[Self, ...]:
        """Simulate the same step once for each size of the inter-op pool."""
        return compare_inter_op(self, sizes)

    def compare_devices(self, other: Schedule) -> DeviceComparison:
        """Return whether other devices, under which `other` simulates the same program, are worth it.

        Where they are not with the program's own batch, the batch is doubled until they are.
        """
        from simplace.analysis.device_comparison import compare_devices

        return compare_devices(self, other)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-ready data (schema simplace/schedule/1)."""
        from simplace.exports import schedule_report
        from simplace.views.text.verdict import write_verdict

        return schedule_report.report_schedule(self, write_verdict(self))

    def figure(self, figure: str = "timeline", *, style: str = "screen") -> Picture:
        """Return "timeline", "parallelism" or "memory" as a picture, which a notebook shows."""
        from simplace.views.figures.drawing import Picture, choose_figure
        from simplace.views.figures.placed_figures import CHARTS

        return Picture(CHARTS[choose_figure(figure, CHARTS)](self), style)

    def draw(
        self, file: str | Path, figure: str = "timeline", *, style: str = "screen", overwrite: bool = False
    ) -> None:
        """Draw such a figure to an .svg, .png, .pdf or .dot file; raise `simplace.errors.DrawingError`.

        A file that simplace did not write is replaced only with `overwrite`.
        """
        self.figure(figure, style=style).save(file, overwrite)

    def __str__(self) -> str:
        from simplace.views.text import schedule_tables

        return schedule_tables.write_summary(self)

    def __repr__(self) -> str:
        from simplace.views.text import schedule_tables

        return f"<{schedule_tables.write_headline(self).splitlines()[0]}>"

    def _repr_html_(self) -> str:
        from simplace.views import notebook

        return notebook.schedule_html(self)
