"""Tables of the critical path by layer and by op type, and of the decisions behind the copies on it."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.analysis.path_groups import PathShare, group_by_layer, group_by_op, rank_copy_causes
from simplace.analysis.schedule import Schedule
from simplace.explain.sentences import state_reason
from simplace.views.text.cost_sentences import format_uncertain
from simplace.views.text.quantities import format_bytes, format_count
from viz import Column, Table


def path_tables(schedule: Schedule, limit: int = 6) -> list[Table]:
    """Return the critical path by layer and by op type, in times that add up to the last step, and causes of copies."""
    shares = {"layer": group_by_layer(schedule), "op type": group_by_op(schedule)}
    tables = [_share_table(f"critical path by {what}", found, limit) for what, found in shares.items()]
    return [*tables, cause_table(schedule)]


def _share_table(title: str, shares: Sequence[PathShare], limit: int) -> Table:
    whole, rest = sum(one.time for one in shares), shares[limit:]
    rows = [
        (one.name, f"{one.events:,}", format_uncertain(one.time, one.error), f"{one.time / whole:.0%}")
        for one in shares[:limit]
    ]
    left = sum(one.time for one in rest)
    off = sum(one.time * one.error for one in rest) / left if left else 0.0
    columns = (Column(title), *(Column(head, "right", flexible=False) for head in ("events", "time", "of the step")))
    return Table(columns, tuple(rows), footer=f"and {len(rest):,} more, {format_uncertain(left, off)}" if rest else "")


def cause_table(schedule: Schedule, limit: int = 5) -> Table:
    """Return the decisions that cause copies between devices, those with most time on the critical path first."""
    found, placement = rank_copy_causes(schedule), schedule.placement
    rows = [
        (
            format_uncertain(one.time, one.error) if one.time else "-",
            f"{one.count:,}",
            format_bytes(one.size),
            f"{placement.graph.names[one.cause.reason.node]}: {state_reason(placement, one.cause.reason)}",
            one.cause.source or "-",
        )
        for one in found[:limit]
    ]
    time = Column("on the path", "right", flexible=False)
    columns = (time, Column("copies", "right", flexible=False),
               Column("size", "right", flexible=False), Column("decision behind them", below=True),
               Column("line"))  # fmt: skip
    more = len(found) - len(rows)
    return Table(columns, tuple(rows), footer=f"and {format_count(more, 'more decision')}" if more else "")
