"""The verdict on a simulated step: why its devices are not busier, in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from simplace.analysis.device_time import CAUSES, Cause, DeviceTime
from simplace.analysis.part_names import name_copied, name_part
from simplace.analysis.schedule import Schedule
from simplace.devices.device_ranges import fold_names
from simplace.views.text.cost_sentences import format_makespan, format_uncertain
from simplace.views.text.quantities import format_bytes, format_count
from simplace.views.text.sharing_phrases import describe_sharing_briefly
from viz import Column, Table
from viz.names import visible

if TYPE_CHECKING:
    from simplace.executor.trace import Span

HEADINGS: Mapping[Cause, str] = {
    "launches": "launches", "copies": "copies", "collectives": "collectives", "input": "input",
    "devices": "other devices",
}  # fmt: skip
_BRIEF = 2  # groups of devices that a brief verdict tells of
_LISTED = 3  # names, or first and last ones of several, that it lists of a group: more devices are counted
_LETTERS = 32  # of all the names that it lists
_SMALL = 0.1  # of a step: shorter waits of a busy device are not told


class _GroupVerdict(NamedTuple):
    """Record of what is said of devices that are busy and wait alike: "GPU:0 busy 16%, launch-bound", its evidence."""

    brief: str
    evidence: str = ""


def write_verdict(schedule: Schedule) -> str:
    """Return in one line how busy each device is, and what it waits for; the CPU's only where nothing else works."""
    groups = _list_groups(schedule)
    return "; ".join("".join(_describe_group(schedule, group, _name_group(schedule, group))) for group in groups)


def write_brief_verdict(schedule: Schedule) -> str:
    """Return the verdict without its evidence, such as "GPU:0 busy 16%, launch-bound", of the first devices alike.

    What is idle all the time comes last.
    """
    groups = sorted(_list_groups(schedule), key=lambda group: group[0].is_idle)
    said = [_describe_group(schedule, one, _name_group(schedule, one, _LISTED)).brief for one in groups[:_BRIEF]]
    return "; ".join([*said, *(["…"] if len(groups) > _BRIEF else [])])


def _name_group(schedule: Schedule, group: Sequence[DeviceTime], most: int | None = None) -> str:
    """Return the names of devices; how many they are where that takes more than `most` names, or many letters."""
    devices = [schedule.placed.devices.by_name[one.device] for one in group]
    names = fold_names(device.short for device in devices)
    listed = ", ".join(names)
    if most is None or (len(names) <= most and len(listed) <= _LETTERS):
        return listed
    types = {device.type for device in devices}
    return format_count(len(devices), types.pop() if len(types) == 1 else "device")


def _list_groups(schedule: Schedule) -> list[list[DeviceTime]]:
    """Return the devices that the verdict is on, those together that are busy and wait alike."""
    devices = schedule.placed.devices.by_name
    others = [one for one in schedule.device_times if devices[one.device].type != "CPU"]
    if all(one.is_idle for one in others):
        others = [one for one in schedule.device_times if one in others or not one.is_idle]
    times = others or schedule.device_times
    groups: dict[tuple[object, ...], list[DeviceTime]] = {}
    for one in times:
        alike = (one.main_cause, one.is_idle, schedule.find_awaited_type(one), one.is_latency_bound)
        groups.setdefault(alike, []).append(one)
    return list(groups.values())


def write_step_verdict(schedule: Schedule) -> str:
    """Return the verdict with the program, the time of its step, and the costs that it was simulated with."""
    name, costs = schedule.placement.program.title, schedule.estimated.costs
    return visible(f"a simulated step of {name} takes {format_makespan(schedule)} ({costs}): {write_verdict(schedule)}")


def device_time_table(schedule: Schedule) -> Table:
    """Return where the time of each device goes, in shares of the step that add up to 100%."""
    rows = []
    for one in schedule.device_times:
        times, shares = _list_times(one), round_shares(_list_times(one))
        name = schedule.placed.devices.by_name[one.device].short
        rows.append((name, *(f"{share}%" if time else "-" for share, time in zip(shares, times, strict=True))))
    columns = (Column("device", flexible=False), Column("busy", "right", flexible=False),
               *(Column(f"{'waits for ' * (cause == 'launches')}{HEADINGS[cause]}", "right", flexible=False)
                 for cause in CAUSES),
               Column("nothing to do", "right", flexible=False))  # fmt: skip
    used = [i for i in range(len(columns)) if i < 3 or any(row[i] != "-" for row in rows)]
    return Table(tuple(columns[i] for i in used), tuple(tuple(row[i] for i in used) for row in rows))


def round_shares(times: Sequence[int]) -> list[int]:
    """Return shares in whole percents that add up to 100.

    The first is rounded as where it stands alone; of the others, those with the largest remainders are rounded up.

    >>> round_shares([1, 1, 1]), round_shares([2, 1]), round_shares([0, 0])
    ([33, 34, 33], [67, 33], [0, 0])
    """
    whole = sum(times)
    if not whole:
        return [0] * len(times)
    shares = [(200 * times[0] + whole) // (2 * whole), *(100 * time // whole for time in times[1:])]
    order = sorted(range(1, len(times)), key=lambda i: (-(100 * times[i] % whole), i))
    for i in order[: 100 - sum(shares)]:
        shares[i] += 1
    return shares


def _describe_group(schedule: Schedule, group: Sequence[DeviceTime], names: str) -> _GroupVerdict:
    """Return what holds for devices that are busy and wait alike, and are called `names`."""
    first = group[0]
    if first.is_idle:
        has_ops = any(node.device == first.device for node in schedule.estimated.graph.nodes if node.role == "op")
        them = "it" if len(group) == 1 else "them"
        return _GroupVerdict(f"{names} idle", f": nothing {'computes on' if has_ops else 'requests'} {them}")
    busy = f"{names} busy {_format_range([round_shares(_list_times(one))[0] for one in group])}"
    if first.main_cause is None:
        return _describe_busy(schedule, group, busy)
    brief, evidence = _describe_cause(schedule, group, first.main_cause)
    return _GroupVerdict(f"{busy}, {brief}", evidence)


def _describe_busy(schedule: Schedule, group: Sequence[DeviceTime], busy: str) -> _GroupVerdict:
    """Return what is said of devices that wait for nothing mostly: what of their kernels, and the waits that count."""
    first = group[0]
    waits = [each for each in CAUSES if each in first.waits and first.waits[each].time > _SMALL * first.whole]
    is_cpu = schedule.placed.devices.by_name[first.device].type == "CPU"
    words = {**HEADINGS, "launches": "the executor"} if is_cpu else HEADINGS
    rest = ", ".join(f"{_share_of(group, each)} for {words[each]}" for each in waits)
    waiting = f", {'each waits' if len(group) > 1 else 'waits'} {rest}" if rest else ""
    if not first.is_latency_bound:
        return _GroupVerdict(busy, waiting)
    return _GroupVerdict(f"{busy}, latency-bound", f": {_describe_kernels(schedule, group)}{waiting}")


def _describe_cause(schedule: Schedule, group: Sequence[DeviceTime], cause: Cause) -> _GroupVerdict:
    """Return what devices mostly wait for, with what takes longest of it."""
    share, who = f"{_share_of(group, cause)} of the step", "each waits" if len(group) > 1 else "it waits"
    if cause == "launches" and schedule.placed.devices.by_name[group[0].device].type == "CPU":
        return _GroupVerdict("bound by the executor", f": its bookkeeping and hand-offs between threads take {share}")
    if cause == "launches":
        kernels = _describe_kernels(schedule, group)
        return _GroupVerdict("launch-bound", f": {who} for the host to launch {kernels} during {share}")
    number = max((one.waits[cause] for one in group), key=lambda waited: waited.time).longest
    longest, shared = _name_span(schedule, schedule.trace.spans[number]), describe_sharing_briefly(schedule, number)
    during = f"during {share}, longest for {longest}" + (f", {shared}" if shared else "")
    if cause == "devices":
        awaited = {schedule.find_awaited(one) for one in group}
        other = awaited.pop() if len(awaited) == 1 else "another device"
        return _GroupVerdict(f"{who} for {other}", f" {during}")
    bound = {"copies": "copy-bound", "collectives": "bound by collectives", "input": "input-bound"}[cause]
    what = {"copies": "copies", "collectives": "collectives", "input": "the input pipeline"}[cause]
    return _GroupVerdict(bound, f": {who} for {what} {during}")


def _describe_kernels(schedule: Schedule, group: Sequence[DeviceTime]) -> str:
    """Return how many kernels one of some devices runs, and how long one takes in the mean."""
    counts = [one.kernels for one in group]
    mean = float(f"{sum(one.busy for one in group) / max(1, sum(counts)):.2g}")
    took = format_uncertain(mean, schedule.measure_kernels_error([one.device for one in group]))
    return f"{'up to ' * (len(set(counts)) > 1)}{format_count(max(counts), 'kernel')} of {took}"


def _name_span(schedule: Schedule, span: Span) -> str:
    """Return what a span did, with the user's line."""
    graph = schedule.estimated.graph
    node, line = graph.nodes[span.node], graph.source_line(span.node)
    said = name_part(graph, span.node)
    if span.kind == "copy":
        copy = graph.copies[node.copy]
        said = f"{name_copied(copy)} ({format_bytes(schedule.estimated.copy_bytes[node.copy])})"
    elif span.kind == "collective":
        one = graph.collectives[graph.collective_of[span.node]]
        said = f"{one.kind} {node.name} ({format_bytes(one.size)})"
    return f"{said} at {line}" if line else said


def _share_of(group: Sequence[DeviceTime], cause: Cause) -> str:
    return _format_range([round_shares(_list_times(one))[1 + CAUSES.index(cause)] for one in group])


def _list_times(one: DeviceTime) -> list[int]:
    """List what adds up to the step: busy, the waits by cause, idle."""
    return [one.busy, *(one.waits[cause].time if cause in one.waits else 0 for cause in CAUSES), one.idle]


def _format_range(shares: Sequence[int]) -> str:
    """Return the shares of devices in percent: those of two in their order, of more the least and the largest.

    >>> _format_range([20]), _format_range([31, 20]), _format_range([31, 20, 25])
    ('20%', '31% and 20%', '20% to 31%')
    """
    low, high = min(shares), max(shares)
    if low == high:
        return f"{high}%"
    return " and ".join(f"{share}%" for share in shares) if len(shares) == 2 else f"{low}% to {high}%"
