"""The one line about what ran while simplace watched: ops by device, and the copies of a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from simplace.program.watched import RanOps, Watched, choose_named, order_devices
from simplace.views.text.quantities import format_count, format_total_bytes
from viz.names import visible

_NAMED = 3  # ops that are named, of those on the devices with fewer


def write_watch_line(watched: Watched) -> str:
    """Return the line: how many ops are on each device, which are on those with few, and what a step copies."""
    counts = watched.count_by_device()
    if not counts:
        said = "nothing is known of what ran" if watched.functions else "TensorFlow ran no op while it was watched"
        return visible(". ".join([f"simplace: {said}", *_without_stops(watched.remarks)]))
    order, named = order_devices(counts), choose_named(counts)
    heads = [device for device in order if device not in named]
    counted = ", ".join(_count_ops(device, counts, is_first=not i) for i, device in enumerate(heads))
    listed = [
        f"{_count_ops(device, counts)}: {_name_ops(_ops_on(watched, device))}" for device in order if device in named
    ]
    placed = "; ".join([", ".join([counted, *listed[:1]]), *listed[1:]])
    return visible(". ".join([f"simplace: {placed}; {_tell_copies(watched)}", *_without_stops(watched.remarks)]))


def _count_ops(device: str, counts: Mapping[str, int], *, is_first: bool = False) -> str:
    count = format_count(counts[device], "op") if is_first else f"{counts[device]:,}"
    return f"{count} on {_shorten(device)}"


def _ops_on(watched: Watched, device: str) -> Iterator[RanOps]:
    return (each for each in watched.ops if each.device == device)


def _without_stops(remarks: Iterable[str]) -> Iterator[str]:
    return (remark.rstrip(".") for remark in remarks)


def _name_ops(ops: Iterable[RanOps]) -> str:
    """Name the ops that a device has most of, with the lines.

    >>> _name_ops([RanOps("StringJoin", "cpu", "model.py:31"), RanOps("Range", "cpu", "", 2)])
    'Range ×2, StringJoin (model.py:31)'
    """
    counts: Counter[tuple[str, str]] = Counter()
    for each in ops:
        counts[each.op, each.at] += each.count
    order = sorted(counts, key=lambda key: -counts[key])  # of equal counts, those of functions first
    named = [_name_one(op, at, counts[op, at]) for op, at in order[:_NAMED]]
    return ", ".join([*named, "..."] if len(order) > _NAMED else named)


def _name_one(op: str, at: str, count: int) -> str:
    times = f" ×{count:,}" if count > 1 else ""
    return f"{op}{times} ({at})" if at else f"{op}{times}"


def _tell_copies(watched: Watched) -> str:
    step = watched.step()
    if step is None:
        return "no function was called"
    a_step = " a step" if step.times > 1 else ""
    if not step.copies:
        return "no copies"
    size = format_total_bytes([copy.size for copy in step.copies])
    return f"{format_count(len(step.copies), 'copy')}{a_step}, {size}"


def _shorten(device: str) -> str:
    """Return a device as people write it.

    >>> _shorten("/job:localhost/replica:0/task:0/device:GPU:0")
    'GPU:0'
    """
    return device.rpartition("/device:")[2]
