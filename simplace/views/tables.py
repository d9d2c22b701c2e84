"""Tables of a result: devices, copies, nodes, differences."""

from __future__ import annotations

from collections import Counter

from simplace.explain import sentence
from simplace.graph import dtypes
from simplace.partition.shapes import TensorSizes
from simplace.placement import reasons as why
from simplace.placement.placement import Placement
from simplace.result import Placed
from simplace.views import quantities
from viz import Column, Table


def short(placement: Placement, device: str) -> str:
    """Spell a full device name without what all devices share."""
    found = placement.devices.find(device)
    return found.short if found is not None else device


def device_table(placed: Placed) -> Table:
    """Count ops, the bytes they put out, and the copies that arrive, a device a row."""
    placement = placed.placement
    sizes = TensorSizes(placement)
    ops = Counter(decision.device for decision in placement.decisions.values())
    made: dict[str, list[int | None]] = {d.name: [] for d in placement.devices}
    for node in placement.decisions:
        for slot, dtype in enumerate(placement.graph.out_types[node]):
            if dtypes.size(dtype) is not None:
                made[placement.device(node)].append(sizes.size(node, slot))
    rows = []
    for device in placement.devices:
        arriving = [c for c in placed.copies if c.target == device.name and c.source != c.target and not c.is_control]
        copied = f"{quantities.plural(len(arriving), 'copy')}, {quantities.total([c.size for c in arriving])}"
        row = (device.short, f"{ops[device.name]:,}", quantities.total(made[device.name]), copied if arriving else "-")
        rows.append(row)
    columns = (Column("device", flexible=False), Column("ops", "right", flexible=False),
               Column("tensors they make", "right"), Column("copied in"))  # fmt: skip
    return Table(columns, tuple(rows))


def copy_table(placed: Placed, limit: int | None = None) -> Table:
    """List the tensors copied between devices, largest first."""
    placement = placed.placement
    crossing = [c for c in placed.copies if c.source != c.target and not c.is_control]
    crossing.sort(key=lambda c: (-(c.size or 0), c.tensor))
    rows = tuple(
        (
            f"{short(placement, c.source)} → {short(placement, c.target)}",
            c.tensor,
            f"{c.dtype} {quantities.shape(c.shape)}",
            quantities.size(c.size),
            ", ".join(placement.graph.names[i] for i in c.consumers),
        )
        for c in crossing[:limit]
    )
    more = len(crossing) - len(rows)
    columns = (Column("copy", flexible=False), Column("tensor"), Column("type"),
               Column("size", "right", flexible=False), Column("used by"))  # fmt: skip
    return Table(columns, rows, footer=f"and {more:,} more; --table lists them all" if more else "")


def node_table(placed: Placed) -> Table:
    """List every node with its devices, reason and the user's line, in TensorFlow's order."""
    placement = placed.placement
    rows = tuple(
        (
            node.name,
            node.op,
            node.requested or "-",
            short(placement, node.device),
            sentence(placement, why.reason(placement, node.id)),
            node.source or "-",
        )
        for node in placement.nodes
    )
    columns = (Column("node"), Column("op"), Column("requested"), Column("device", flexible=False),
               Column("because"), Column("line"))  # fmt: skip
    return Table(columns, rows)


def difference_table(placed: Placed, limit: int | None = None) -> Table:
    """List the nodes that simplace and TensorFlow place differently."""
    placement, agreement = placed.placement, placed.agreement
    assert agreement is not None, "only a compared placement has differences"
    rows = tuple(
        (d.node, d.op, short(placement, d.ours) or "(no such node)", short(placement, d.theirs) or "(no such node)")
        for d in agreement.differences[:limit]
    )
    more = len(agreement.differences) - len(rows)
    columns = (Column("node"), Column("op"), Column("simplace", flexible=False), Column("TensorFlow", flexible=False))
    return Table(columns, rows, footer=f"and {more:,} more" if more else "")
