"""Match each send with its receive, and copy what is sent.

Mirrors core/common_runtime/rendezvous_mgr.cc and gpu/gpu_util.cc: whichever end comes later starts the copy. Where both
are in host memory of a process nothing is copied; the receive is given the same buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simplace.costs.estimate import EstimatedGraph
from simplace.devices.device_set import Device, shorten_task
from simplace.executor.gpu_streams import Stream, Streams
from simplace.executor.propagator_state import Activation, Iteration
from simplace.executor.thread_pool import Worker
from simplace.executor.trace import Span, TrackKind
from simplace.executor.transfer_queues import QueuedTransfer, TransferQueues
from simplace.executor.variable_memory import Buffer

Received = Callable[[Activation, list[object], Worker | None, int], None]


@dataclass(slots=True, eq=False)
class _Entry:
    """Record of the send or the receive of one tensor that waits for the other."""

    receive: Activation | None = None
    sent_by: int = -1
    payload: object = None
    is_dead: bool = False


class Rendezvous:
    """Serve the sends and receives of all devices; `received` is called when a receive has its tensor.

    It is given the receive, its output, who completed it (None for the end of a copy), and the span of that.
    """

    def __init__(self, estimated: EstimatedGraph, streams: Streams, queues: TransferQueues, received: Received) -> None:
        self._estimated = estimated
        self._graph = estimated.graph
        self._streams = streams
        self._queues = queues
        self._received = received
        self._poll_ns = round(1e9 * estimated.model.overheads.poll_s)
        self._sender = {receive: send for send, receive in self._graph.receiver.items()}
        self._step = 0
        self._entries: dict[tuple[int, Iteration], _Entry] = {}

    def start_step(self, step: int) -> None:
        """Forget the step before."""
        self._step = step
        self._entries = {}

    def send(self, activation: Activation, worker: Worker, span: int) -> None:
        """Take what a send has, a dead one nothing; in a loop nobody has posted the receive, so it is posted here."""
        receive = self._graph.receiver[activation.node]
        entry = self._find_entry(receive, activation.iteration)
        entry.sent_by, entry.is_dead = span, activation.is_dead
        entry.payload = activation.payloads.get(0)
        if entry.receive is None and not self._graph.ins[receive]:
            now = self._queues.events.now
            entry.receive = Activation(receive, activation.iteration, False, {}, now, span)
            activation.iteration.running += 1
        if entry.receive is not None:
            self._transfer(activation.node, entry, worker, span)

    def post_receive(self, activation: Activation, worker: Worker, span: int) -> None:
        """Take a receive that the source node, or a frame's, has started."""
        entry = self._find_entry(activation.node, activation.iteration)
        entry.receive = activation
        if entry.sent_by >= 0:
            self._transfer(self._sender[activation.node], entry, worker, span)

    def _find_entry(self, receive: int, iteration: Iteration) -> _Entry:
        return self._entries.setdefault((receive, iteration), _Entry())

    def _transfer(self, send: int, entry: _Entry, worker: Worker, last: int) -> None:
        """Both ends are there, `last` came later: copy, or share the buffer where both are host memory."""
        receive = entry.receive
        assert receive is not None, "a transfer needs both ends"
        receive.is_dead = entry.is_dead
        stream, waits_for = self._find_way(self._graph.nodes[send].copy)
        if stream is None or entry.is_dead:
            self._received(receive, [entry.payload], worker, last)
            return
        self._enqueue(stream, waits_for, send, receive, entry.payload, last)

    def _enqueue(
        self,
        stream: Stream,
        waits_for: tuple[Stream, ...],
        send: int,
        receive: Activation,
        payload: object,
        last: int,
    ) -> None:
        """Enqueue a copy; the host sees its end a while later."""
        recorder, events, number = self._queues.recorder, self._queues.events, self._graph.nodes[send].copy
        now = events.now
        span = recorder.add(
            Span(send, stream.track, "copy", now, now, now, last, "dependency", self._step, str(receive.iteration))
        )
        made: list[Buffer | None] = []

        def begun() -> None:
            made.append(self._allocate(number, receive, span))

        def ended() -> None:
            events.at(events.now + self._poll_ns, seen)

        def seen() -> None:
            recorder.release(payload, events.now, span)
            self._received(receive, list(made), None, span)

        route = self._queues.routes.of_copy[number]
        transfer = QueuedTransfer(route, {span: tuple(route.loads)}, (stream,), waits_for, "link", ended, begun)
        self._queues.enqueue(transfer)

    def _allocate(self, number: int, receive: Activation, span: int) -> Buffer | None:
        copy, recorder = self._graph.copies[number], self._queues.recorder
        target = copy.target if copy.target_memory == "device" else recorder.host_of(copy.target)
        now = self._queues.events.now
        return recorder.allocate(target, self._estimated.copy_bytes[number], receive.node, 0, now, span)

    def _find_way(self, number: int) -> tuple[Stream | None, tuple[Stream, ...]]:
        """Return the stream or link that a copy takes, with the compute streams it waits for."""
        copy, streams = self._graph.copies[number], self._streams
        devices = self._graph.placed.devices.by_name
        source, target = devices[copy.source], devices[copy.target]
        from_gpu = source.type != "CPU" and copy.source_memory == "device"
        to_gpu = target.type != "CPU" and copy.target_memory == "device"
        waits = [streams.compute(d) for d, is_gpu in ((source, from_gpu), (target, to_gpu)) if is_gpu]
        if source.task != target.task:
            name = f"network {shorten_task(source.name)} → {shorten_task(target.name)}"
            return streams.of(f"{source.task} → {target.task}", "link", name), tuple(waits)
        if not from_gpu and not to_gpu:
            return None, ()
        kinds: dict[tuple[bool, bool], tuple[Device, TrackKind, str]] = {
            (True, False): (source, "d2h", "to host"),
            (False, True): (target, "h2d", "from host"),
            (True, True): (source, "d2d", "to GPUs"),
        }
        device, kind, title = kinds[from_gpu, to_gpu]
        return streams.of(device.name, kind, f"{device.short} {title}"), tuple(waits)
