"""Tables of the eager ops of a program: by line, and one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from simplace.compare.compare_placements import Agreement
from simplace.devices.device_set import DeviceSet
from simplace.explain.eager import tell_choice
from simplace.explain.sentences import short_request
from simplace.placement.eager.eager_placement import EagerCopies, PlacedEager, PlacedOp
from simplace.views.text import quantities
from simplace.views.text.alike_rows import join_alike_rows
from viz import Column, Table

_OPS = 4  # names of ops in a row
REFUSED = "refused"


def device_table(eager: PlacedEager) -> Table:
    """Count ops, how often they ran, and the copies that arrive, a device a row."""
    rows = []
    for device in eager.all_devices:
        here = [each for each in eager.ops if each.placement.device == device.name]
        arriving = [copy for each in eager.ops for copy in each.copies if copy.target == device.name]
        times = sum(each.times for each in here)
        rows.append((device.short, f"{len(here):,}", f"{times:,}", _copied(arriving) or "-"))
    columns = (Column("device", flexible=False), Column("ops", "right", flexible=False),
               Column("times", "right", flexible=False), Column("copied in", flexible=False))  # fmt: skip
    return Table(columns, tuple(rows))


def line_table(eager: PlacedEager, limit: int | None = None) -> Table:
    """List the lines that ran ops, a device a row, in the order of their first run; of many, those with most copies.

    Three or more devices that are alike share a row.
    """
    of_row: dict[tuple[str, str], list[PlacedOp]] = {}
    for each in eager.ops:
        of_row.setdefault((each.op.at, each.placement.device), []).append(each)
    whole = _tabulate_lines(eager, of_row)
    if limit is None or len(whole.rows) <= limit:
        return whole
    heaviest = sorted(of_row, key=lambda key: (-_bytes(of_row[key]), -sum(each.times for each in of_row[key])))
    alike = dict.fromkeys(_strip_number(of_row, key) for key in heaviest)
    kept = set(list(alike)[:limit])
    shown = {key: ops for key, ops in of_row.items() if _strip_number(of_row, key) in kept}
    more = quantities.format_count(len(of_row) - len(shown), "more line")
    return replace(_tabulate_lines(eager, shown), footer=f"and {more}; --table lists every op")


def _strip_number(of_row: Mapping[tuple[str, str], Sequence[PlacedOp]], key: tuple[str, str]) -> tuple[str, ...]:
    """Return what devices that are alike have in common: of a line, the kind of device, the ops, the copies."""
    at, device = key
    return at, device.rstrip("0123456789"), ops_text(of_row[key]), _copied(_copies(of_row[key]))


def _tabulate_lines(eager: PlacedEager, of_row: Mapping[tuple[str, str], Sequence[PlacedOp]]) -> Table:
    rows = tuple(
        (at or "-", device_text(eager.all_devices, device), ops_text(ops), _copied(_copies(ops)) or "-")
        for (at, device), ops in of_row.items()
    )
    columns = (Column("line", flexible=False), Column("device", flexible=False),
               Column("ops", listed=True, wrapped=True), Column("inputs copied", flexible=False))  # fmt: skip
    return join_alike_rows(Table(columns, rows), place=1)


def op_table(eager: PlacedEager) -> Table:
    """List every op with its scope, device and reason."""
    rows = tuple(
        (
            each.op.at or "-",
            each.op.op,
            f"{each.times:,}",
            short_request(each.op.scope) or "-",
            device_text(eager.all_devices, each.placement.device),
            str(tell_choice(each, eager)),
            _copied(each.copies) or "-",
        )
        for each in eager.ops
    )
    columns = (Column("line"), Column("op", flexible=False), Column("times", "right", flexible=False), Column("scope"),
               Column("device", flexible=False), Column("because", below=True),
               Column("inputs copied", flexible=False))  # fmt: skip
    return Table(columns, rows)


def difference_table(agreement: Agreement, devices: DeviceSet) -> Table:
    """List the eager ops that simplace and TensorFlow place differently."""
    rows = tuple(
        (each.node, each.op, device_text(devices, each.ours), device_text(devices, each.theirs))
        for each in agreement.differences
    )
    columns = (Column("eager op"), Column("op", flexible=False), Column("simplace", flexible=False),
               Column("TensorFlow", flexible=False))  # fmt: skip
    return Table(columns, rows)


def device_text(devices: DeviceSet, name: str) -> str:
    """Write a device in short, and what stands for none."""
    found = devices.find(name)
    return found.short if found is not None else name or REFUSED


def ops_text(ops: Sequence[PlacedOp]) -> str:
    """Count ops by name, in the order of their first run.

    Constants, which any line has, come last.
    """
    counts: Counter[str] = Counter()
    for each in ops:
        counts[each.op.op] += each.times
    names = sorted(counts, key=lambda name: name == "_EagerConst")
    more = len(names) - _OPS
    shown = [f"{name} ×{counts[name]:,}" if counts[name] > 1 else name for name in names[:_OPS]]
    return ", ".join([*shown, f"{more} more"] if more > 0 else shown)


def _copies(ops: Iterable[PlacedOp]) -> list[EagerCopies]:
    return [copy for each in ops for copy in each.copies]


def _bytes(ops: Iterable[PlacedOp]) -> int:
    return sum(copy.bytes or 0 for copy in _copies(ops))


def _copied(copies: Sequence[EagerCopies]) -> str:
    if not copies:
        return ""
    sizes = quantities.format_total_bytes([copy.bytes for copy in copies])
    if any(copy.tensors is None for copy in copies):
        return sizes
    return f"{quantities.format_count(sum(copy.tensors or 0 for copy in copies), 'copy')}, {sizes}"
