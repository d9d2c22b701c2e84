"""The critical path by layer and by op type, and the copies by the decision behind them with their time on the path.

Times are of the last step. Each moment of it counts once: for the span of the path that runs, the later one of two that
overlap; between two spans, for hand-offs and polling.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from simplace.analysis.schedule import Schedule
from simplace.analysis.time_sources import add_errors
from simplace.executor.trace import Span
from simplace.explain.copy_causes import CopyCause, group_copy_causes
from simplace.explain.gradient_findings import get_gradient_scope
from simplace.partition.transfers import Copy

BETWEEN = "hand-offs and polling"
_REPLICA = re.compile(r"^replica_\d+/")
_OF_KIND = {"launch": "launches", "dead": "dead nodes", "copy": "copies", "collective": "collectives"}


@dataclass(frozen=True, slots=True)
class PathShare:
    """Record of the time of a critical path, in nanoseconds, that goes to one layer or op type, over `events` spans.

    `error` is how far off the time is in the mean, as a share of it.
    """

    name: str
    time: int
    events: int
    error: float


@dataclass(frozen=True, slots=True)
class CauseTime:
    """Record of the copies that one decision causes: how many, their bytes, their time on the critical path (ns).

    `error` is how far off that time is in the mean, as a share of it.
    """

    cause: CopyCause
    count: int
    size: int
    time: int
    error: float


def group_by_op(schedule: Schedule) -> tuple[PathShare, ...]:
    """Return the critical path by op type, the longest first; launches, copies and hand-offs are types of their own."""
    nodes = schedule.estimated.graph.nodes

    def name_op(span: Span) -> str:
        is_hand_off = nodes[span.node].role != "op" and span.kind == "op"
        return BETWEEN if is_hand_off else _OF_KIND.get(span.kind, nodes[span.node].op)

    return _group(schedule, name_op)


def group_by_layer(schedule: Schedule, layers: Layers | None = None) -> tuple[PathShare, ...]:
    """Return the critical path by layer, the longest first; `layers` are those of the schedule where one has them.

    A layer is one of Keras by its name, else the user's line. The gradient of a layer counts by itself.
    """
    named = layers or Layers(schedule)
    return _group(schedule, lambda span: named.name(span.node))


def locate_layers(schedule: Schedule, layers: Layers) -> dict[str, tuple[int, int]]:
    """Return from when to when, in nanoseconds, the critical path has spans of each layer, by the name of the layer."""
    found: dict[str, tuple[int, int]] = {}
    spans = schedule.trace.spans
    for number in schedule.critical_path:
        span = spans[number]
        name = layers.name(span.node)
        start, end = found.get(name, (span.start, span.end))
        found[name] = min(start, span.start), max(end, span.end)
    return found


def rank_copy_causes(schedule: Schedule) -> tuple[CauseTime, ...]:
    """Return the decisions that cause copies between devices: most time on the path first, then as they are grouped."""
    graph = schedule.estimated.graph
    on_path = Counter[int]()
    for number, time in _list_times(schedule):
        if number >= 0 and schedule.trace.spans[number].kind == "copy":
            on_path[graph.nodes[schedule.trace.spans[number].node].copy] += time
    known = [(i, copy) for i, one in enumerate(graph.copies) if (copy := _translate(schedule, one)) is not None]
    causes = group_copy_causes(schedule.placement, [copy for _, copy in known])
    times = [sum(on_path[known[i][0]] for i in cause.copies) for cause in causes]
    off = schedule.estimated.model.assume_reliability("copy").error
    found = [
        CauseTime(cause, len(cause.copies), cause.size, time, off if time else 0.0)
        for cause, time in zip(causes, times, strict=True)
    ]
    return tuple(sorted(found, key=lambda one: -one.time))


def _translate(schedule: Schedule, copy: Copy) -> Copy | None:
    """Return a copy between devices in the terms of the placement, None for one that is not, or has no ends there."""
    origin = schedule.estimated.graph.rewritten.origin
    consumers = tuple(origin[node] for node in copy.consumers if origin[node] >= 0)
    if copy.is_control or copy.source == copy.target or origin[copy.producer] < 0 or not consumers:
        return None
    return replace(copy, producer=origin[copy.producer], consumers=consumers)


def _group(schedule: Schedule, name: Callable[[Span], str]) -> tuple[PathShare, ...]:
    found: defaultdict[str, list[tuple[Span | None, int]]] = defaultdict(list)
    for number, time in _list_times(schedule):
        span = schedule.trace.spans[number] if number >= 0 else None
        found[BETWEEN if span is None else name(span)].append((span, time))
    shares = (
        PathShare(
            key,
            sum(time for _, time in times),
            sum(span is not None for span, _ in times),
            add_errors(schedule.estimated, times),
        )
        for key, times in found.items()
    )
    return tuple(sorted((share for share in shares if share.time), key=lambda share: (-share.time, share.name)))


def _list_times(schedule: Schedule) -> Iterator[tuple[int, int]]:
    """Yield the spans of the path from its end, each with the time that is its own; -1 between two of them."""
    spans, path = schedule.trace.spans, schedule.critical_path
    if not path:
        return
    steps = (0, *schedule.trace.steps)
    at, start = spans[path[-1]].end, steps[spans[path[-1]].step]
    for number in reversed(path):
        span = spans[number]
        if span.end < at:
            yield -1, at - max(span.end, start)
            at = max(span.end, start)
        if span.start < at:
            yield number, at - max(span.start, start)
            at = max(span.start, start)
    if at > start:
        yield -1, at - start


class Layers:
    """Name the layers of nodes of the partitioned graph."""

    def __init__(self, schedule: Schedule) -> None:
        self._graph = schedule.estimated.graph
        self._placement = schedule.placement
        graph = self._placement.graph
        self._names: dict[int, str] = {}
        self._known = {self._placement.notes(node).known_as for node in graph.op_ids}
        self._lines: dict[str, str] = {}  # of forward ops, by their names and by the scopes that they are in
        for node in graph.op_ids:
            name, line = graph.names[node], self._placement.notes(node).at
            if line and get_gradient_scope(name) is None:
                self._lines.setdefault(name, line)
                self._lines.setdefault(name.rpartition("/")[0], line)

    def name(self, node: int) -> str:
        """Return the layer of a node; of a gradient, that of the forward op in whose scope it is."""
        if node not in self._names:
            self._names[node] = self._find_name(node)
        return self._names[node]

    def _find_name(self, node: int) -> str:
        part = self._graph.nodes[node]
        origin = self._graph.copies[part.copy].producer if part.copy >= 0 else part.origin
        own = self._graph.rewritten.origin[origin] if origin >= 0 else -1
        if own < 0:
            return BETWEEN
        name, notes = self._placement.graph.names[own], self._placement.notes(own)
        scope = get_gradient_scope(name)
        known = notes.known_as or name
        if scope is None:
            return self._cut_layer(known) if notes.known_as else notes.at or name
        if notes.known_as:
            return f"gradient of {self._cut_layer(get_gradient_scope(known) or known)}"
        line = self._lines.get(scope, "") if scope else ""
        return f"gradient of {line}" if line else notes.at or name

    def _cut_layer(self, known: str) -> str:
        """Return the scopes of a name without those that are an op's own, and without that of a replica."""
        scopes = _REPLICA.sub("", known).split("/")
        while len(scopes) > 1 and (scopes[-1][:1].isupper() or "/".join(scopes) in self._known):
            scopes.pop()
        return "/".join(scopes)
