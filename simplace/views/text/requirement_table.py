"""The table of what does not meet the user's requirements."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.checks.requirements import Violation
from viz import Column, Table


def requirement_table(violations: Sequence[Violation], limit: int | None = None) -> Table:
    """Return the first `limit` violations, with what each requires, what holds, and why."""
    rows = tuple(
        (v.requirement.text, v.program or "-", f"{v.node} ({v.op})" if v.node else "-", v.device or "-", v.because,
         v.source or "-")
        for v in violations[:limit]
    )  # fmt: skip
    more = len(violations) - len(rows)
    columns = (Column("required"), Column("program"), Column("node"), Column("device", flexible=False),
               Column("because", below=True), Column("line"))  # fmt: skip
    return Table(columns, rows, footer=f"and {more:,} more" if more else "")
