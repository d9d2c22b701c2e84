"""Draw the eager ops of a program: a box for what a line runs on a device, edges for tensors, copies in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from simplace.devices.device_set import DeviceSet
from simplace.errors import DrawingError
from simplace.explain.sentences import short_request
from simplace.graph import dtypes
from simplace.graph.op_kinds import VARIABLE_HANDLE
from simplace.placement.eager.eager_placement import EagerCopies, PlacedEager, PlacedOp
from simplace.placement.eager.execute import EagerRule
from simplace.result import Result
from simplace.views.figures.placement_figure import BADGES, arrange_in_rows
from simplace.views.text import quantities
from simplace.views.text.eager_tables import ops_text
from viz import Edge, Figure, Group, Node

EAGER = "eager"  # the name of this figure
_ELSEWHERE = "tensors from elsewhere"  # what functions, or NumPy through them, made
_LISTED = 3  # devices that the title lists by name
_CLEAR = 12  # lines of copies between boxes: more of them are drawn as one for each two devices

_Copied = tuple[PlacedOp, EagerCopies]


@dataclass(frozen=True, slots=True)
class _Box:
    """Record of ops drawn as one: those of some lines on one device, "" for no device."""

    lines: tuple[str, ...]
    device: str
    ops: tuple[PlacedOp, ...]


@dataclass(frozen=True, slots=True)
class _Way:
    """Record of tensors that go from a box, or from a device, to a box; those of a copy with the ops that need them."""

    source: str
    target: str
    count: int
    copied: tuple[_Copied, ...] = ()


def draws_eager_ops(result: Result, figure: str) -> bool:
    """Return whether a figure is that of the eager ops: by its name, or the overview of what runs nothing else.

    Raises `DrawingError` where it is by name, and no eager op ran.
    """
    if result.eager is None and figure == EAGER:
        raise DrawingError(f"{result.target}: no eager op ran, so there are none to draw; choose another figure")
    return figure == EAGER or (figure == "overview" and result.works_eagerly)


def eager_figure(result: Result, limit: int = 40) -> Figure:
    """Describe where the lines of a program run their ops outside of functions, in at most `limit` boxes and some more.

    Of more lines, those with the fewest copies and executions share a box of their device. A copy is an edge of its
    own, with the number of tensors and their bytes; where there are many, all between two devices are one edge.
    """
    eager = result.eager
    assert eager is not None, "asked only of a result with eager ops"
    boxes = _boxes(eager, limit)
    number = {each.name: str(i) for i, box in enumerate(boxes) for each in box.ops}
    ways = _ways(eager, number)
    outside = sorted({way.source for way in ways} - set(number.values()))
    used = {each.placement.device for each in eager.ops} | set(outside)
    figure = Figure(
        title=_write_message(eager, [each for way in ways for each in way.copied]),
        caption=_caption(result, eager, used),
        groups=tuple(_groups(eager, used)),
        nodes=(
            *(_node(str(i), box) for i, box in enumerate(boxes)),
            *(Node(device, _ELSEWHERE, "", device, "argument") for device in outside),
        ),
        edges=(
            *_draw_copies([way for way in ways if way.copied], _find_homes(boxes, outside)),
            *(Edge(way.source, way.target, "data", "", way.count) for way in ways if not way.copied),
        ),
        description=_description(result, eager),
        direction="page" if len(used) > 1 else "auto",
    )
    return arrange_in_rows(figure)


def _boxes(eager: PlacedEager, limit: int) -> list[_Box]:
    rows: dict[tuple[str, str], list[PlacedOp]] = {}
    for each in eager.ops:
        rows.setdefault((each.op.at, each.placement.device), []).append(each)
    heaviest = sorted(rows, key=lambda row: (-_bytes(rows[row]), -sum(each.times for each in rows[row])))[:limit]
    made = [_Box((at,), device, tuple(rows[at, device])) for at, device in rows if (at, device) in heaviest]
    rest: dict[str, list[str]] = {}
    for at, device in rows:
        if (at, device) not in heaviest:
            rest.setdefault(device, []).append(at)
    for device, lines in rest.items():
        made.append(_Box(tuple(lines), device, tuple(each for at in lines for each in rows[at, device])))
    return made


def _node(key: str, box: _Box) -> Node:
    times = sum(each.times for each in box.ops)
    is_variable = all(each.op.op == VARIABLE_HANDLE for each in box.ops)
    if len(box.lines) > 1:
        label, device = quantities.format_count(len(box.lines), "other line"), box.device or None
        return Node(key, label, ops_text(box.ops), device, "scope", count=times, requested=_format_ungranted(box))
    return Node(
        key,
        ops_text(box.ops),
        box.lines[0],
        box.device or None,
        "variable" if is_variable else "op",
        requested=_format_ungranted(box),
        tooltip=box.lines[0],
    )


def _format_ungranted(box: _Box) -> str:
    """Return the scope that ops of a box did not get, "" where there is none."""
    scopes = sorted(
        {
            short_request(each.op.scope).removeprefix("/device:")
            for each in box.ops
            if each.placement.refusal is not None
            or (each.placement.choice is not None and each.placement.choice.rule is EagerRule.SOFT_FALLBACK)
        }
    )
    return ", ".join(filter(None, scopes))


def _ways(eager: PlacedEager, number: dict[str, str]) -> list[_Way]:
    data: Counter[tuple[str, str]] = Counter()
    copies: dict[tuple[str, str], list[_Copied]] = {}
    for each in eager.ops:
        here, copied = number[each.name], {copy.input: copy for copy in each.copies}
        for way in each.made_by:
            if way.input not in copied and number[eager.ops[way.maker].name] != here:
                data[number[eager.ops[way.maker].name], here] += way.times
        for copy in each.copies:
            makers = [way for way in each.made_by if way.input == copy.input]
            is_constant = not makers and each.op.op == "_EagerConst"
            if not is_constant:
                source = number[eager.ops[makers[0].maker].name] if makers else copy.source
                copies.setdefault((source, here), []).append((each, copy))
    return [
        *(_Way(source, target, _tensors(found), tuple(found)) for (source, target), found in copies.items()),
        *(_Way(source, target, count) for (source, target), count in data.items()),
    ]


def _find_homes(boxes: Sequence[_Box], outside: Iterable[str]) -> dict[str, str]:
    """Return the device of each node of the figure."""
    return {str(i): box.device for i, box in enumerate(boxes)} | {device: device for device in outside}


def _draw_copies(ways: Sequence[_Way], homes: Mapping[str, str]) -> Iterator[Edge]:
    """Yield an edge for each way or, where there are many, for each two devices, with what goes back on its label."""
    pairs: dict[tuple[str, str], list[_Way]] = {}
    for way in ways:
        pairs.setdefault((homes[way.source], homes[way.target]), []).append(way)
    is_clear = sum(len(some) for (source, target), some in pairs.items() if source != target) <= _CLEAR
    for (source, target), there in list(pairs.items()):
        if source == target or is_clear:
            yield from (Edge(way.source, way.target, "copy", _copied(way.copied), way.count) for way in there)
        elif (source, target) in pairs:
            back = pairs.pop((target, source), [])
            labels = [_copied([each for way in some for each in way.copied]) if some else "" for some in (there, back)]
            count = sum(way.count for way in (*there, *back))
            yield Edge(there[0].source, there[0].target, "copy", labels[0], count, True, True, back=labels[1])


def _copied(found: Sequence[_Copied]) -> str:
    kinds = sorted({dtypes.format_dtype(each.op.inputs[copy.input].dtype) for each, copy in found})
    count = _tensors(found)
    what = f"{count:,} × {kinds[0]}" if len(kinds) == 1 else quantities.format_count(count, "tensor")
    return f"{what} · {quantities.format_total_bytes([copy.bytes for _, copy in found])}"


def _tensors(found: Sequence[_Copied]) -> int:
    return sum(copy.tensors or 1 for _, copy in found)


def _groups(eager: PlacedEager, used: set[str]) -> list[Group]:
    seen: Counter[str] = Counter()
    kinds = Counter(device.type for device in eager.all_devices if device.name in used)
    groups = []
    for device in eager.all_devices:
        if device.name in used:
            times = sum(each.times for each in eager.ops if each.placement.device == device.name)
            ops = quantities.format_count(times, "op")
            badge = f"{device.type[0]}{device.spec.id}" if kinds[device.type] >= BADGES else ""
            groups.append(Group(device.name, device.short, ops, device.type, seen[device.type], badge=badge))
        seen[device.type] += 1
    return groups


def _write_message(eager: PlacedEager, copied: Sequence[_Copied]) -> str:
    """Return the title: on which devices the ops run, and what is copied between them."""
    used = {each.placement.device for each in eager.ops}
    names = [device.short for device in eager.all_devices if device.name in used]
    if len(names) < 2:
        return f"All eager ops on {names[0]}" if names else "No eager op has a device"
    where = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) <= _LISTED else f"{len(names)} devices"
    if not copied:
        return f"Eager ops on {where}: nothing is copied"
    size = quantities.format_total_bytes([copy.bytes for _, copy in copied])
    return f"Eager ops on {where}: {quantities.format_count(_tensors(copied), 'copy')}, {size}"


def _caption(result: Result, eager: PlacedEager, used: set[str]) -> str:
    agreement = result.eager_agreement
    parts = [
        f"{result.target} outside of functions",
        quantities.format_count(len(eager.ops), "eager op")
        + (f", run {eager.times:,} times" if eager.times > len(eager.ops) else ""),
    ]
    idle = [device.short for device in eager.all_devices if device.name not in used]
    if idle:
        parts.append(f"nothing runs on {', '.join(idle)}")
    if agreement is not None:
        how = "agrees" if agreement.holds else "differs"
        parts.append(f"TensorFlow {how}: {agreement.same}/{agreement.total} ops")
    return " · ".join(parts)


def _description(result: Result, eager: PlacedEager) -> str:
    devices = _devices(result.devices)
    return (
        f"Placement of what {result.target} runs outside of functions on {devices}: "
        f"{quantities.format_count(len(eager.ops), 'eager op')} by the rules of TensorFlow {result.tensorflow}."
    )


def _devices(devices: DeviceSet) -> str:
    names = [device.short for device in devices]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _bytes(ops: list[PlacedOp]) -> int:
    return sum(copy.bytes or 0 for each in ops for copy in each.copies)
