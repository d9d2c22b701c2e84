"""Tables of a result: devices, copies, nodes, differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import nlargest, nsmallest
from itertools import groupby

from simplace.partition.shapes import TensorSizes
from simplace.partition.transfers import Copy, CopyColumns, between_devices
from simplace.placement.placement import Placement
from simplace.placement.xla_compiler import Cluster
from simplace.program.program import ObservedRun
from simplace.result import Placed
from simplace.views.text import quantities
from viz import Column, Table

_ASKED = 2  # tensors and ops that name a run


def shorten_device(placement: Placement, device: str) -> str:
    """Return a full device name without what all devices share."""
    found = placement.devices.find(device)
    return found.short if found is not None else device


def device_table(placed: Placed) -> Table:
    """Return ops, the bytes of their outputs, and the incoming copies, a row per device."""
    placement, copies = placed.placement, placed.copy_columns
    sizes_of = TensorSizes(placement.placed).output_sizes
    out_types = placement.graph.out_types
    ops = Counter(placement.node_devices)
    made: dict[str, list[int | None]] = {d.name: [] for d in placement.devices}
    for node, name in enumerate(placement.node_devices):
        if name and out_types[node]:
            made[name] += sizes_of(node)
    arriving: dict[str, list[int | None]] = {d.name: [] for d in placement.devices}
    if placed.runs:
        for copy in (copy for each in placed.runs for copy in between_devices(each.copies)):
            arriving[copy.target].append(copy.size)
    else:
        for i in copies.between_devices:
            arriving[copies.targets[i]].append(copies.sizes[i])
    rows: list[tuple[str, ...]] = []
    for device in placement.devices:
        found = arriving[device.name]
        copied = (
            f"{quantities.format_count(len(found), 'copy')}, {quantities.format_total_bytes(found)}" if found else "-"
        )
        rows.append((device.short, f"{ops[device.name]:,}", quantities.format_total_bytes(made[device.name]), copied))
    rows = _join_idle(rows)
    columns = (Column("device", flexible=False), Column("ops", "right", flexible=False),
               Column("output bytes", "right", flexible=False), Column("copied in", flexible=False))  # fmt: skip
    return Table(columns, tuple(rows))


def _join_idle(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return a row in the place of three or more devices beside each other on which nothing is."""
    joined: list[tuple[str, ...]] = []
    for cells, alike in groupby(rows, key=lambda row: row[1:]):
        names = [row[0] for row in alike]
        if cells[0] == "0" and cells[2] == "-" and len(names) >= 3:
            names = [f"{names[0]} to {names[-1]}"]
        joined += [(name, *cells) for name in names]
    return joined


def cluster_table(placed: Placed) -> Table:
    """List the calls that XLA compiles: the device of each, and its ops, which are in no other count."""
    names = placed.placement.graph.names
    rows = tuple(
        (
            names[found.node],
            shorten_device(placed.placement, found.device),
            f"{len(found.ops):,}",
            _list_frequent(found),
        )
        for found in placed.clusters
    )
    columns = (Column("compiled by XLA"), Column("device", flexible=False), Column("ops", "right", flexible=False),
               Column("most of them", listed=True, wrapped=True))  # fmt: skip
    return Table(columns, rows)


def count_ops_by_device(placed: Placed) -> Counter[str]:
    """Count the ops on each device, those that XLA compiles in the place of their call."""
    ops = Counter(shorten_device(placed.placement, decision.device) for decision in placed.placement.decisions.values())
    for found in placed.clusters:
        ops[shorten_device(placed.placement, found.device)] += len(found.ops) - 1
    return ops


def _list_frequent(cluster: Cluster) -> str:
    ops = Counter(op.op for op in cluster.ops)
    shown = ", ".join(f"{count} {op}" if count > 1 else op for op, count in ops.most_common(4))
    return f"{shown}, …" if len(ops) > 4 else shown


def copy_table(placed: Placed, limit: int | None = None) -> Table:
    """Return the tensors copied between devices, largest first."""
    placement, copies = placed.placement, placed.copy_columns
    largest = _list_largest(copies, limit)
    rows = tuple(
        (
            ends,
            c.tensor,
            f"{c.dtype} {quantities.format_shape(c.shape)}",
            quantities.format_bytes(c.size),
            ", ".join(placement.graph.names[i] for i in c.consumers),
        )
        for ends, c in zip(_name_ends(placement, largest), largest, strict=True)
    )
    more = len(copies.between_devices) - len(rows)
    columns = (Column("copy", flexible=False), Column("tensor"), Column("type", flexible=False),
               Column("size", "right", flexible=False), Column("used by", listed=True))  # fmt: skip
    return Table(columns, rows, footer=f"and {more:,} more; --table lists them all" if more else "")


def run_table(placed: Placed, limit: int | None = None) -> Table:
    """Return the tensors that each run of a session copies between devices, the largest first; its line stands once."""
    placement, rows, more = placed.placement, [], 0
    for run in placed.runs:
        found = sorted(between_devices(run.copies), key=lambda copy: (-(copy.size or 0), copy.tensor))
        more += len(found[limit:]) if limit is not None else 0
        shown = found[:limit]
        for i, (ends, c) in enumerate(zip(_name_ends(placement, shown), shown, strict=True)):
            rows.append(
                (
                    name_run(run.run) if i == 0 else "",
                    ends,
                    c.tensor,
                    f"{c.dtype} {quantities.format_shape(c.shape)}",
                    quantities.format_bytes(c.size),
                    ", ".join(placement.graph.names[i] for i in c.consumers) or "fetched",
                )
            )
    columns = (Column("run", heading=True), Column("copy", flexible=False), Column("tensor"),
               Column("type", flexible=False), Column("size", "right", flexible=False),
               Column("used by", listed=True))  # fmt: skip
    return Table(columns, tuple(rows), footer=f"and {more:,} more; --table lists them all" if more else "")


def name_run(run: ObservedRun) -> str:
    """Return the line of a run and what it was for: what it fetches, or else the ops that it only runs."""
    asked = (*run.run.fetches, *run.run.targets)
    shown = ", ".join(asked[:_ASKED]) + (", …" if len(asked) > _ASKED else "")
    return f"{run.at}: {shown}" if run.at else shown


def describe_step_run(run: ObservedRun, runs: int) -> str:
    """Return which run of a session counts as a step."""
    return f"a step is the run {name_run(run)}, the largest of {runs:,}"


def _name_ends(placement: Placement, copies: Sequence[Copy]) -> list[str]:
    """List from where to where each tensor is copied; of those that two memories of a device receive, to which."""
    received = {(each.tensor, each.target, each.target_memory) for each in copies}
    times = Counter((tensor, target) for tensor, target, _ in received)
    return [
        f"{shorten_device(placement, each.source)} → {shorten_device(placement, each.target)}"
        + (" (host)" if each.target_memory == "host" and times[each.tensor, each.target] > 1 else "")
        for each in copies
    ]


def _list_largest(copies: CopyColumns, limit: int | None) -> list[Copy]:
    """Return the records of the tensors copied between devices, the largest first, then by name."""
    crossing, sizes = copies.between_devices, copies.sizes
    if limit is not None and len(crossing) > limit:  # names are made for those alone that may be among the first
        least = min(nlargest(limit, (sizes[i] or 0 for i in crossing)), default=0)
        crossing = [i for i in crossing if (sizes[i] or 0) >= least]
    rows = zip([-(sizes[i] or 0) for i in crossing], map(copies.tensor, crossing), crossing, strict=True)
    first = sorted(rows) if limit is None else nsmallest(limit, rows)
    return [copies[i] for _, _, i in first]


def node_table(placed: Placed) -> Table:
    """Return every node with its devices, reason and the user's line, in TensorFlow's order."""
    from simplace.explain import reasons as why
    from simplace.explain.sentences import state_reason

    placement = placed.placement
    rows = tuple(
        (
            node.name,
            node.op,
            node.requested or "-",
            shorten_device(placement, node.device),
            str(state_reason(placement, why.find_reason(placement, node.id))),
            node.source or "-",
        )
        for node in placement.nodes
    )
    columns = (Column("node"), Column("op", flexible=False), Column("requested"), Column("device", flexible=False),
               Column("because", below=True), Column("line"))  # fmt: skip
    return Table(columns, rows)


def difference_table(placed: Placed, limit: int | None = None) -> Table:
    """Return the nodes that simplace and TensorFlow place differently."""
    placement, agreement = placed.placement, placed.agreement
    assert agreement is not None, "only a compared placement has differences"
    rows = tuple(
        (
            d.node,
            d.op,
            shorten_device(placement, d.ours) or "(no such node)",
            shorten_device(placement, d.theirs) or "(no such node)",
        )
        for d in agreement.differences[:limit]
    )
    more = len(agreement.differences) - len(rows)
    columns = (
        Column("node"),
        Column("op", flexible=False),
        Column("simplace", flexible=False),
        Column("TensorFlow", flexible=False),
    )
    return Table(columns, rows, footer=f"and {more:,} more" if more else "")
