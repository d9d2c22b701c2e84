"""The summary of the ops that ran outside of functions: devices, lines, findings."""

from __future__ import annotations

from simplace.explain.eager_findings import find_in_eager, line_of_eager
from simplace.explain.finding import cite_page
from simplace.placement.eager.eager_placement import PlacedEager
from simplace.views.text import eager_tables
from simplace.views.text.lines import list_findings
from simplace.views.text.quantities import format_count
from viz import to_text

_LINES, _FEW_LINES = 20, 5  # in a program without graphs, and beside some


def write_eager_summary(
    eager: PlacedEager, width: int | None = None, *, is_all: bool = True, is_long: bool = False
) -> str:
    """Return the summary of what ran outside of functions.

    `is_all` tells that the program ran nothing else, `is_long` that every line is wanted.
    """
    lines = eager_tables.line_table(eager, None if is_long else _LINES if is_all else _FEW_LINES)
    devices = [to_text(eager_tables.device_table(eager), width)] if is_all else []
    parts = [write_eager_title(eager), *devices, to_text(lines, width)]
    if found := find_in_eager(eager, is_all=is_all):
        lines_of_findings = [cite_page(line_of_eager(one), one) for one in found]
        parts.append(list_findings(lines_of_findings, width, "simplace doctor lists them all"))
    return "\n\n".join(parts)


def write_eager_title(eager: PlacedEager) -> str:
    """Return how many ops ran outside of functions."""
    times = f", run {eager.times:,} times" if eager.times > len(eager.ops) else ""
    return f"outside of functions: {format_count(len(eager.ops), 'eager op')}{times}"
