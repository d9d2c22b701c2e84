"""Move the bytes of copies over links that they share: a copy's rate changes whenever another begins or ends.

A copy first takes its latency, then moves its bytes at its own rate, or at its share of the links that it passes
(`fair_shares`). One that passes none takes the time that it has alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from simplace.executor.copy_routes import CopyRoute, Routes
from simplace.executor.events import Events
from simplace.executor.fair_shares import Demand, share_fairly
from simplace.executor.trace import SharedCopy
from simplace.executor.trace_recorder import TraceRecorder


@dataclass(slots=True, eq=False)
class _Flow:
    """Record of a copy that moves bytes: `left` is how many nanoseconds they take at its own rate; it has a `share`.

    `lost` is by full link how many nanoseconds of them it could not move, `others` the tracks of the copies there.
    """

    span: int
    track: int
    route: CopyRoute
    then: Callable[[], None]
    left: float
    share: float = 1.0
    full: int = -1
    end: int = 0
    lost: dict[int, float] = field(default_factory=dict)
    others: dict[int, set[int]] = field(default_factory=dict)


class LinkSharing:
    """Run copies by number, and record what they shared."""

    def __init__(self, routes: Routes, events: Events, recorder: TraceRecorder) -> None:
        self._routes = routes
        self._capacities = [link.bandwidth for link in routes.links for _ in ("out", "in")]
        self._events = events
        self._recorder = recorder
        recorder.links = routes.links
        self._flows: list[_Flow] = []
        self._at = 0  # until when all flows have been advanced
        self._plan = 0  # ends that were planned under another number do not hold any more

    def carry(self, copy: int, span: int, then: Callable[[], None]) -> None:
        """Start a copy, whose span starts now; end the span when it has ended, and call `then`."""
        route, events = self._routes.of_copy[copy], self._events
        flow = _Flow(span, self._recorder.spans[span].track, route, then, float(route.moving))
        alone, moves_at = route.latency + route.moving, events.now + route.latency
        if route.ways:
            self._recorder.shared[span] = SharedCopy(alone, moves_at, route.ways)
        if route.ways and route.moving:
            events.at(moves_at, lambda: self._add(flow))
        else:
            events.at(events.now + alone, lambda: self._end(flow))

    def _add(self, flow: _Flow) -> None:
        self._advance()
        self._flows.append(flow)
        self._plan_ends()

    def _advance(self) -> None:
        """Move bytes until now at the rates that hold."""
        passed, self._at = self._events.now - self._at, self._events.now
        if not passed:
            return
        sharing: dict[int, set[int]] = {}
        for flow in self._flows:
            for way in flow.route.ways:
                sharing.setdefault(way, set()).add(flow.track)
        for flow in self._flows:
            flow.left -= passed * flow.share
            if flow.full >= 0:
                flow.lost[flow.full] = flow.lost.get(flow.full, 0.0) + passed * (1 - flow.share)
                flow.others.setdefault(flow.full, set()).update(sharing[flow.full] - {flow.track})

    def _plan_ends(self) -> None:
        """Share the links among the copies there are, and plan the next end."""
        demands = [Demand(flow.route.rate, flow.route.ways) for flow in self._flows]
        for flow, fair in zip(self._flows, share_fairly(demands, self._capacities), strict=True):
            flow.share, flow.full = fair.rate / flow.route.rate, fair.full
            flow.end = self._events.now + max(0, round(flow.left / flow.share))
        self._plan += 1
        if self._flows:
            plan = self._plan
            self._events.at(min(flow.end for flow in self._flows), lambda: self._end_flows(plan))

    def _end_flows(self, plan: int) -> None:
        if plan != self._plan:
            return
        self._advance()
        ended = [flow for flow in self._flows if flow.end == self._events.now]
        self._flows = [flow for flow in self._flows if flow.end != self._events.now]
        self._plan_ends()
        for flow in ended:
            self._end(flow)

    def _end(self, flow: _Flow) -> None:
        """End a copy, and record which link slowed it down most; of equal ones the first that was full."""
        self._recorder.ends_at(flow.span, self._events.now)
        if flow.lost:
            way = max(flow.lost, key=lambda way: flow.lost[way])
            shared = self._recorder.shared[flow.span]
            self._recorder.shared[flow.span] = shared._replace(
                slowed_by=way // 2, others=tuple(sorted(flow.others[way]))
            )
        flow.then()
