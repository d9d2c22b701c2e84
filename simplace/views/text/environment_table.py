"""The table of what this computer has."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.doctor.environment import Fact
from viz import Column, Table, to_text
from viz.names import visible


def computer_report(facts: Sequence[Fact], width: int | None = None) -> str:
    """Return one row per fact, at most `width` cells wide, and below how to fix the problems."""
    columns = (Column("what", flexible=False), Column("state", flexible=False), Column("found", wrapped=True))
    table = to_text(Table(columns, tuple((fact.topic, fact.state, fact.text) for fact in facts)), width)
    remedies = [visible(f"  {fact.topic}: {fact.remedy}") for fact in facts if fact.remedy]
    return "\n".join([table, "", "what to do", *remedies] if remedies else [table])
