"""Run a step on the textbook model: a pool of threads per device, ops queued when their counter reaches zero.

Each device has an inter-op pool, which runs whole ops in the order in which they became ready, and an intra-op pool,
over which a multi-threaded kernel is split; the thread of the op waits for the parts. A GPU is a pool like any other.
Copies have a link an ordered pair of devices, one at a time. This is not how TensorFlow works: see
`tensorflow_model`. Ops that take no time need no thread. Order: ops that become ready together queue in the order of
the edges; the free thread with the lowest number is taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from simplace.costs.estimate import EstimatedGraph
from simplace.executor.collective_runs import Arrival, CollectiveRuns
from simplace.executor.control_flow import ControlFlow
from simplace.executor.events import Events
from simplace.executor.gpu_streams import Streams
from simplace.executor.link_routes import find_routes
from simplace.executor.propagator_state import Activation, Propagator
from simplace.executor.stalls import require_ended
from simplace.executor.step_options import Threads
from simplace.executor.trace import Span, SpanKind, Trace, Why
from simplace.executor.trace_recorder import TraceRecorder
from simplace.executor.transfer_queues import TransferQueues
from simplace.executor.variable_memory import Buffer

_Start = Callable[[int, int], None]  # called with a free track and the last span on it


def run_executor(estimated: EstimatedGraph, flow: ControlFlow, threads: Threads) -> tuple[Trace, int]:
    """Run the steps; return the trace and how many events it took."""
    simulation = _TextbookSimulation(estimated, flow, threads)
    simulation.start_step()
    simulation.events.run()
    while arrived := simulation.collectives.give_up():
        simulation.run_collective(arrived)
        simulation.events.run()
    require_ended(estimated.graph, simulation.step_ends, threads.steps)
    return simulation.recorder.trace(simulation.step_ends), simulation.events.count


class _Queue:
    """Serve requests for a track, first in, first out."""

    def __init__(self, tracks: list[int]) -> None:
        self._free = list(tracks)
        self._waiting: deque[_Start] = deque()
        self._last_span = dict.fromkeys(tracks, -1)

    def ask(self, start: _Start) -> None:
        self._waiting.append(start)
        self._serve()

    def give_back(self, track: int, span: int) -> None:
        self._last_span[track] = span
        self._free.append(track)
        self._free.sort()
        self._serve()

    def _serve(self) -> None:
        while self._waiting and self._free:
            track = self._free.pop(0)
            self._waiting.popleft()(track, self._last_span[track])


class _TextbookSimulation:
    def __init__(self, estimated: EstimatedGraph, flow: ControlFlow, threads: Threads) -> None:
        self.estimated = estimated
        self.graph = estimated.graph
        self.flow = flow
        self.threads = threads
        self.events = Events()
        self.recorder = TraceRecorder(estimated, threads.intra_op_size, flow.list_lengths)
        self.step_ends: list[int] = []
        self.is_over = False
        self.inter = {name: self._pool(name, "inter-op", threads.inter_op_size) for name in self.graph.devices}
        size = threads.intra_op_size
        self.intra = {name: self._pool(name, "intra-op", size if size > 1 else 0) for name in self.graph.devices}
        self.links: dict[tuple[str, str], _Queue] = {}
        self.streams = Streams(self.recorder)
        self.queues = TransferQueues(find_routes(estimated), self.events, self.recorder)
        self.collectives = CollectiveRuns(self.graph)
        self.propagator = self._new_propagator()

    def _pool(self, device: str, title: str, size: int) -> _Queue:
        short, kind = self._short(device), "intra" if title == "intra-op" else "worker"
        tracks = [
            self.recorder.track(f"{short} {title} {i}", "intra" if kind == "intra" else "worker", device)
            for i in range(max(size, 0 if kind == "intra" else 1))
        ]
        return _Queue(tracks)

    def _short(self, device: str) -> str:
        return self.graph.placed.devices.by_name[device].short

    def _new_propagator(self) -> Propagator:
        keep, drop = self.recorder.keep, self.recorder.release
        return Propagator(self.graph, self.flow, keep, lambda payload: drop(payload, self.events.now, -1))

    # steps

    def start_step(self) -> None:
        self.propagator = self._new_propagator()
        self.collectives = CollectiveRuns(self.graph)
        self.is_over = False
        for activation in self.propagator.start():
            self._arrive(activation)
        self._end_step_if_done()  # with no op at all

    def _end_step_if_done(self) -> None:
        if self.is_over or not self.propagator.is_done:
            return
        self.is_over = True
        self.step_ends.append(self.events.now)
        self.recorder.end_step(self.events.now)
        if len(self.step_ends) < self.threads.steps:
            self.events.at(self.events.now, self.start_step)

    # ops

    def _arrive(self, activation: Activation) -> None:
        """Queue an op whose counter reached zero; what takes no time is done in the same moment."""
        activation.ready_at = self.events.now
        node = self.graph.nodes[activation.node]
        if node.role == "recv":
            return  # ends with its copy
        if activation.node in self.graph.collective_of:
            self._join_collective(activation)
            return
        duration = 0 if activation.is_dead else self._duration(activation.node)
        if duration:
            self.inter[node.device].ask(lambda track, last: self._start_op(activation, duration, track, last))
            return
        self.events.at(self.events.now, lambda: self._pass(activation))

    def _duration(self, node: int) -> int:
        cost = self.estimated.kernels[node]
        return round(1e9 * (cost.device_s or cost.host_s))

    def _pass(self, activation: Activation) -> None:
        span = activation.released_by
        if self.graph.nodes[activation.node].role == "send":
            self._send(activation)
            return
        outputs = [] if activation.is_dead else self._outputs(activation, span)
        self._done(activation, outputs, activation.payloads.values(), span)

    def _outputs(self, activation: Activation, span: int) -> list[object]:
        return self.recorder.outputs(activation.node, activation.payloads, self.events.now, span)

    def _start_op(self, activation: Activation, duration: int, track: int, last: int) -> None:
        device = self.graph.nodes[activation.node].device
        span = self._span(activation, track, "op", last, "thread")
        outputs = self._outputs(activation, span)

        def end() -> None:
            self.recorder.ends_at(span, self.events.now)
            self.inter[device].give_back(track, span)
            self._done(activation, outputs, activation.payloads.values(), span)

        cost = self.estimated.kernels[activation.node]
        parts = min(cost.shards, self.threads.intra_op_size)
        if parts < 2:
            self.events.at(self.events.now + duration, end)
            return
        self._split(activation, max(duration, parts * round(cost.least_part_s * 1e9)), parts, span, end)

    def _split(self, activation: Activation, duration: int, parts: int, op: int, then: Callable[[], None]) -> None:
        """Queue the parts of a kernel on its device's intra-op pool."""
        pool = self.intra[self.graph.nodes[activation.node].device]
        left = [parts]

        def start_part(part: int, track: int, last: int) -> None:
            share = duration // parts + (part < duration % parts)
            now, asked = self.events.now, self.recorder.spans[op].start
            why: Why = "thread" if now > asked else "dependency"
            span = self.recorder.add(
                Span(
                    activation.node,
                    track,
                    "shard",
                    now,
                    now + share,
                    asked,
                    last if now > asked else op,
                    why,
                    len(self.step_ends),
                    str(activation.iteration),
                )
            )
            self.events.at(now + share, lambda: end_part(track, span))

        def end_part(track: int, span: int) -> None:
            pool.give_back(track, span)
            left[0] -= 1
            if left[0] == 0:
                then()

        for part in range(parts):
            pool.ask(lambda track, last, part=part: start_part(part, track, last))  # type: ignore[misc]

    def _span(self, activation: Activation, track: int, kind: SpanKind, last: int, waited_for: Why) -> int:
        now, ready = self.events.now, activation.ready_at
        why: Why = "start" if activation.released_by < 0 else "dependency"
        cause = activation.released_by
        if now > ready:
            why, cause = waited_for, last
        return self.recorder.add(
            Span(
                activation.node,
                track,
                kind,
                now,
                now,
                ready,
                cause,
                why,
                len(self.step_ends),
                str(activation.iteration),
            )
        )

    def _done(self, activation: Activation, outputs: list[object], used: Iterable[object], span: int) -> None:
        for slot in self.propagator.delivers(activation):
            payload = outputs[slot] if slot < len(outputs) else None
            if isinstance(payload, Buffer):
                payload.uses += 1
        ready = self.propagator.done(activation, outputs)
        for payload in (*outputs, *used):
            self.recorder.release(payload, self.events.now, span)
        for one in ready:
            one.released_by = span
            self._arrive(one)
        self._end_step_if_done()

    # collectives

    def _join_collective(self, activation: Activation) -> None:
        """Add a member to its collective: the last starts the collective; one on a dead branch is done at once."""
        released_by = activation.released_by
        outputs = [] if activation.is_dead else self._outputs(activation, released_by)
        arrived = self.collectives.add(Arrival(activation, outputs, self.events.now, released_by))
        if activation.is_dead:
            self.events.at(self.events.now, lambda: self._pass(activation))
        if arrived:
            self.run_collective(arrived)

    def run_collective(self, arrived: list[Arrival]) -> None:
        """Run a collective on all its members at once, when each of them is free of the one before."""
        by_name = self.graph.placed.devices.by_name
        streams = [self.streams.collective(by_name[self.graph.nodes[one.activation.node].device]) for one in arrived]

        def ended(spans: list[int]) -> None:
            for one, span in zip(arrived, spans, strict=True):
                self._done(one.activation, one.outputs, one.activation.payloads.values(), span)

        self.queues.enqueue_collective(arrived, streams, (), len(self.step_ends), ended)

    # copies

    def _send(self, activation: Activation) -> None:
        """Send a tensor over the link between two devices; the send op itself is done at once."""
        number = self.graph.nodes[activation.node].copy
        copy = self.graph.copies[number]
        receive = Activation(
            self.graph.receiver[activation.node], activation.iteration, activation.is_dead, {},
            self.events.now, activation.released_by,
        )  # fmt: skip
        if not self.graph.ins[receive.node]:  # in a loop nothing posts it beforehand
            activation.iteration.running += 1
        payload = activation.payloads.get(0)
        duration = 0 if activation.is_dead else round(1e9 * self.estimated.copy_seconds[number])
        self._done(activation, [], [], activation.released_by)
        if duration == 0:
            self._done(receive, [payload], [], receive.released_by)
            return
        link = self._link(copy.source, copy.target)
        send = activation.node
        link.ask(lambda track, last: self._start_copy(link, send, receive, payload, duration, track, last))

    def _start_copy(
        self, link: _Queue, send: int, receive: Activation, payload: object, duration: int, track: int, last: int
    ) -> None:
        number = self.graph.nodes[send].copy
        copy = self.graph.copies[number]
        now = self.events.now
        why: Why = "link" if now > receive.ready_at else "dependency"
        span = self.recorder.add(
            Span(
                send,
                track,
                "copy",
                now,
                now + duration,
                receive.ready_at,
                last if why == "link" else receive.released_by,
                why,
                len(self.step_ends),
                str(receive.iteration),
            )
        )
        target = copy.target if copy.target_memory == "device" else self.recorder.host_of(copy.target)
        made = self.recorder.allocate(target, self.estimated.copy_bytes[number], receive.node, 0, now, span)

        def end() -> None:
            link.give_back(track, span)
            self._done(receive, [made], [payload], span)

        route = self.queues.routes.of_copy[number]
        self.queues.sharing.carry(route, {span: tuple(route.loads)}, end)

    def _link(self, source: str, target: str) -> _Queue:
        if (source, target) not in self.links:
            name = f"{self._short(source)} → {self._short(target)}"
            self.links[source, target] = _Queue([self.recorder.track(name, "link", f"{source} → {target}")])
        return self.links[source, target]
