"""What it costs that devices share links, or a card, in words."""

from __future__ import annotations

from collections.abc import Iterator
from math import isinf

from simplace.analysis.link_use import LinkUse
from simplace.analysis.schedule import Schedule
from simplace.analysis.time_sources import find_source
from simplace.analysis.utilisation import CardUse
from simplace.devices.device_ranges import fold_names
from simplace.executor.trace import SharedCopy
from simplace.views.text.cost_sentences import format_uncertain
from simplace.views.text.quantities import format_count

_LISTED = 3  # tracks, or sharers: more are counted


def describe_shared_hardware(schedule: Schedule) -> list[str]:
    """Return a line for each card that is split, and for each link that several GPUs or tasks share: how busy it is."""
    cards = map(describe_card, schedule.split_cards)
    return [*cards, *(describe_link(use) for use in schedule.shared_links)]


def describe_card(card: CardUse) -> str:
    """Return a line of a physical GPU with several logical ones.

    >>> describe_card(CardUse(0, ("GPU:0", "GPU:1"), 700, 0.7))
    'physical GPU 0 runs the kernels of GPU:0, GPU:1 one at a time: busy 70%'
    """
    gpus = _list_some(fold_names(card.gpus))
    return f"physical GPU {card.number} runs the kernels of {gpus} one at a time: busy {card.share:.0%}"


def describe_link(use: LinkUse) -> str:
    """Return a line such as "card (16 GB/s each way, shared by GPU:0, GPU:1): busy 62%; its 6 copies took ..."."""
    link = use.link
    rate = "" if isinf(link.bandwidth) else f"{format_rate(link.bandwidth)} each way, "
    head = f"{link.name} ({rate}shared by {_list_some(fold_names(link.sharers))})"
    if not use.copies and not use.members:
        return f"{head}: nothing passes it"
    slowdown = f"{use.slowdown:.1f}"
    times = "as long as without it" if slowdown == "1.0" else f"{slowdown} times as long as without it"
    return f"{head}: busy {use.share:.0%}; its {' and '.join(_list_passed(use))} took {times}"


def _list_passed(use: LinkUse) -> Iterator[str]:
    if use.copies:
        yield "copy" if use.copies == 1 else format_count(use.copies, "copy")
    if use.members:
        yield "member of a collective" if use.members == 1 else f"{use.members:,} members of collectives"


def describe_sharing(schedule: Schedule, number: int) -> str:
    """Return what slowed a span down, such as "1 ms on its own link: shares card with copies of GPU:1", else ""."""
    said = describe_sharing_briefly(schedule, number)
    copy = schedule.trace.shared[number] if said else None
    if copy is None or not copy.others or not _passes(copy):
        return said
    return f"{said} with {_name_others(schedule, copy.others)}"


def describe_sharing_briefly(schedule: Schedule, number: int) -> str:
    """Return the same without the others."""
    trace = schedule.trace
    copy = trace.shared.get(number)
    if copy is None or copy.slowed_by < 0 or trace.spans[number].duration <= copy.alone:
        return ""
    link, is_collective = trace.links[copy.slowed_by].name, trace.spans[number].kind == "collective"
    if not _passes(copy):
        because = f"{link} holds other members up"
    else:
        because = f"shares {link}" if copy.others else f"{link} is slower"
    error = find_source(schedule.estimated, trace.spans[number]).error
    return f"{format_uncertain(copy.alone, error)} {'alone' if is_collective else 'on its own link'}: {because}"


def _passes(copy: SharedCopy) -> bool:
    """Return whether a member of a collective passes the link that slowed it down itself, as a copy does."""
    return any(way // 2 == copy.slowed_by for way in copy.ways)


def _name_others(schedule: Schedule, others: tuple[int, ...]) -> str:
    """Name the devices, or pairs of tasks, whose copies and collectives had a share."""
    devices = schedule.placed.devices.by_name
    order = {name: place for place, name in enumerate(devices)}
    tracks = [schedule.trace.tracks[i] for i in schedule.trace.track_order if i in others]
    tracks.sort(key=lambda track: order.get(track.owner, len(order)))
    names = [devices[track.owner].short if track.owner in devices else track.name for track in tracks]
    kinds = dict.fromkeys("collectives" if track.kind == "collective" else "copies" for track in tracks)
    return f"{' and '.join(sorted(kinds, reverse=True))} of {_list_some(fold_names(dict.fromkeys(names)))}"


def format_rate(bandwidth: float) -> str:
    """Return bytes/s with their unit.

    >>> format_rate(15.75e9), format_rate(25e6)
    ('15.8 GB/s', '25 MB/s')
    """
    unit, size = ("GB/s", 1e9) if bandwidth >= 1e9 else ("MB/s", 1e6)
    return f"{bandwidth / size:.3g} {unit}"


def _list_some(names: list[str] | tuple[str, ...]) -> str:
    """Return the first names, and how many more there are.

    >>> _list_some(["a", "b", "c", "d"])
    'a, b, c and 1 more'
    """
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")
