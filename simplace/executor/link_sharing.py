"""Move bytes over links that several share: the rate of each changes whenever another begins or ends.

A copy, or a collective, first takes its latency, then moves its bytes at its own rate, or at its share of the links
that it passes (`fair_shares`). One that passes none takes the time that it has alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from simplace.executor.events import Events
from simplace.executor.fair_shares import Demand, share_fairly
from simplace.executor.link_routes import Route
from simplace.executor.trace import PassedLink, SharedCopy
from simplace.executor.trace_recorder import TraceRecorder


@dataclass(slots=True, eq=False)
class _Flow:
    """Record of what moves bytes, with the `ways` of its spans: `left` nanoseconds of them at its own rate.

    It has a `share` of that. `lost` is by full link how many nanoseconds it could not move any, `others` the tracks of
    the others there.
    """

    ways: Mapping[int, tuple[int, ...]]
    tracks: frozenset[int]
    route: Route
    then: Callable[[], None]
    left: float
    share: float = 1.0
    full: int = -1
    end: int = 0
    lost: dict[int, float] = field(default_factory=dict)
    others: dict[int, set[int]] = field(default_factory=dict)


class LinkSharing:
    """Run copies and collectives, and record what they shared."""

    def __init__(self, links: Sequence[PassedLink], events: Events, recorder: TraceRecorder) -> None:
        self._capacities = [link.bandwidth for link in links for _ in ("out", "in")]
        self._events = events
        self._recorder = recorder
        self._flows: list[_Flow] = []
        self._at = 0  # until when all flows have been advanced
        self._plan = 0  # ends that were planned under another number do not hold any more

    def carry(self, route: Route, ways: Mapping[int, tuple[int, ...]], then: Callable[[], None]) -> None:
        """Move bytes for spans that start now; end these when all are there, and call `then`.

        `ways` are those of the route that each span passes, by its number.
        """
        events, spans = self._events, self._recorder.spans
        flow = _Flow(ways, frozenset(spans[i].track for i in ways), route, then, float(route.moving))
        alone, moves_at = route.latency + route.moving, events.now + route.latency
        if route.loads:
            self._recorder.shared |= {span: SharedCopy(alone, moves_at, own) for span, own in ways.items()}
        if route.loads and route.moving:
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
            for way in flow.route.loads:
                sharing.setdefault(way, set()).update(flow.tracks)
        for flow in self._flows:
            flow.left -= passed * flow.share
            if flow.full >= 0:
                flow.lost[flow.full] = flow.lost.get(flow.full, 0.0) + passed * (1 - flow.share)
                flow.others.setdefault(flow.full, set()).update(sharing[flow.full] - flow.tracks)

    def _plan_ends(self) -> None:
        """Share the links among all that move bytes, and plan the next end."""
        demands = [Demand(flow.route.rate, flow.route.loads) for flow in self._flows]
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
        """End all spans, and record which link slowed them down most; of equal ones the first that was full."""
        recorder, way = self._recorder, max(flow.lost, key=lambda way: flow.lost[way], default=-1)
        members = {recorder.spans[span].track for span, own in flow.ways.items() if way in own}
        for span in flow.ways:
            recorder.ends_at(span, self._events.now)
            shared, track = recorder.shared.get(span), recorder.spans[span].track
            if way >= 0 and shared is not None and recorder.spans[span].duration > shared.alone:
                others = flow.others[way] | (members - {track} if flow.route.loads[way] > 1 else set())
                recorder.shared[span] = shared._replace(slowed_by=way // 2, others=tuple(sorted(others)))
        flow.then()
