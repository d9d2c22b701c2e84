"""The memory of a simulated step, which prints, draws and exports itself."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from simplace.analysis.step_memory import StepMemory

if TYPE_CHECKING:
    from simplace.analysis.memory_remedies import Remedy
    from simplace.views.figures.drawing import Picture


class Memory(StepMemory):
    """Record of the memory of a step that prints and exports itself, in a notebook with its figure."""

    @cached_property
    def remedies(self) -> list[Remedy]:
        """Return what would help a step that does not fit, each simulated; [] for one that fits."""
        from simplace.analysis.memory_remedies import find_remedies

        return find_remedies(self)

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON-ready data (schema simplace/memory/1)."""
        from simplace.exports import memory_report
        from simplace.views.figures.variable_roles import VariableRoles

        return memory_report.report_memory(self, VariableRoles(self.schedule).is_state, self.remedies)

    def figure(self, *, style: str = "screen") -> Picture:
        """Return the memory over time as a picture, which a notebook shows."""
        from simplace.views.figures.drawing import Picture
        from simplace.views.figures.memory_chart import memory_chart

        return Picture(memory_chart(self.schedule, self.uses, self.resize), style)

    def __str__(self) -> str:
        from simplace.views.text import memory_tables

        return memory_tables.write_memory(self, self.remedies)

    def __repr__(self) -> str:
        return f"<memory of {self.schedule.placement.program.title}: {'fits' if self.fits else 'does not fit'}>"

    def _repr_svg_(self) -> str:
        return self.figure()._repr_svg_()
