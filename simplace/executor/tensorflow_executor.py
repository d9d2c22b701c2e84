"""Replay one step, or several, as TensorFlow's executor runs it.

Mirrors ExecutorState of tensorflow/core/common_runtime/executor.cc: cheap nodes run on the thread that made them
ready, in FIFO order; of the expensive ones all but the last are dispatched; asynchronous ones hold no thread.
One inter-op pool and one intra-op pool a process serve all its devices. On a GPU a thread only launches, and only one
thread at a time. Logical GPUs of one card run their kernels in the order of the launches, one at a time.

Order: events at one time run in the order of their scheduling; the idle worker that parked last wakes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from simplace.costs.cost_model import Overheads
from simplace.costs.estimate import EstimatedGraph
from simplace.devices.device_set import shorten_task
from simplace.executor.collective_runs import Arrival, CollectiveRuns
from simplace.executor.control_flow import ControlFlow
from simplace.executor.cores import Cores
from simplace.executor.events import Events
from simplace.executor.gpu_streams import Streams, start_on
from simplace.executor.kernel_stats import CostAverages, can_be_expensive
from simplace.executor.launch_turns import Asking, LaunchTurns
from simplace.executor.link_routes import find_routes
from simplace.executor.propagator_state import Activation, Propagator
from simplace.executor.rendezvous import Rendezvous
from simplace.executor.stalls import require_ended
from simplace.executor.step_options import Threads
from simplace.executor.thread_pool import IntraOpWorkers, Pool, PoolTimes, Worker
from simplace.executor.trace import Span, SpanKind, Trace, Why
from simplace.executor.trace_recorder import TraceRecorder
from simplace.executor.transfer_queues import TransferQueues
from simplace.executor.variable_memory import Buffer


@dataclass(slots=True, eq=False)
class _Process:
    """Record of what the devices of one process share."""

    name: str
    cores: Cores
    intra_op_workers: IntraOpWorkers
    pool: Pool
    last: Worker | None = None  # who ended a node last


def run_executor(estimated: EstimatedGraph, flow: ControlFlow, threads: Threads) -> tuple[Trace, int]:
    """Run the steps; return the trace and how many events it took."""
    simulation = _TensorFlowSimulation(estimated, flow, threads)
    simulation.run_steps()
    return simulation.recorder.trace(simulation.step_ends), simulation.events.count


class _TensorFlowSimulation:
    def __init__(self, estimated: EstimatedGraph, flow: ControlFlow, threads: Threads) -> None:
        self.estimated = estimated
        self.graph = estimated.graph
        self.flow = flow
        self.threads = threads
        self.events = Events()
        self.random = Random(threads.seed)
        self.recorder = TraceRecorder(estimated, threads.intra_op_size, flow.list_lengths, is_warm=threads.warm)
        self.streams = Streams(self.recorder)
        self.turns = LaunchTurns()
        self.queues = TransferQueues(find_routes(estimated), self.events, self.recorder)
        self.rendezvous = Rendezvous(estimated, self.streams, self.queues, self._received)
        self.step = 0
        self.step_ends: list[int] = []
        devices = self.graph.placed.devices.by_name
        self.device = [devices[node.device] for node in self.graph.nodes]
        self.on_card = {  # of each logical GPU the others on its card
            name: tuple(devices[other] for other in card if other != name and other in self.graph.devices)
            for name, card in self.graph.placed.devices.cards.items()
        }
        overheads = estimated.model.overheads
        self.op_ns, self.first_ns, self.code_ns, self.dead_ns, self.to_dead_ns = (
            _to_nanoseconds(overheads.op_s),
            _to_nanoseconds(overheads.first_s),
            _to_nanoseconds(overheads.code_s),
            _to_nanoseconds(overheads.dead_s),
            _to_nanoseconds(overheads.to_dead_s),
        )
        self.shared_ns = _to_nanoseconds(overheads.shared_s)
        self.contention = overheads.contention
        self.fork_ns, self.poll_ns, self.step_ns = (
            _to_nanoseconds(overheads.fork_s),
            _to_nanoseconds(overheads.poll_s),
            _to_nanoseconds(overheads.step_s),
        )
        self.pool_times = _pool_times(overheads)
        self.host_ns = [[_to_nanoseconds(one) for one in cost.runs_s or (cost.host_s,)] for cost in estimated.kernels]
        self.least_part_ns = [_to_nanoseconds(cost.least_part_s) for cost in estimated.kernels]
        self.device_ns = [_to_nanoseconds(cost.device_s) for cost in estimated.kernels]
        self.later_ns = [_to_nanoseconds(cost.later_s) for cost in estimated.kernels]
        self.after_ns = [_to_nanoseconds(overheads.after(cost.host_s)) for cost in estimated.kernels]
        can_be = [can_be_expensive(n.op, d.type) for n, d in zip(self.graph.nodes, self.device, strict=True)]
        cycles = [
            [one * estimated.model.clock for one in cost.averages_s or (cost.host_s,)] for cost in estimated.kernels
        ]
        self.is_receive = [node.role == "recv" for node in self.graph.nodes]
        self.averages = CostAverages([node.op for node in self.graph.nodes], cycles, can_be, is_warm=threads.warm)
        self.processes = self._make_processes()
        self.pools = self._make_pools()
        self.process_of = [self.processes[d.task] for d in self.device]
        self.pool_of = [self.pools.get(d.name, p.pool) for d, p in zip(self.device, self.process_of, strict=True)]
        self.in_caller = threads.inter_op == -1 and len(self.graph.devices) == 1
        self.propagator = self._new_propagator()
        self.ran = [0] * len(self.graph)  # times, in this step
        self.types_ran: set[str] = set()  # in this step
        self.collective_of = self.graph.collective_of
        self.collectives = CollectiveRuns(self.graph)
        self.is_over = False

    # set-up

    def _make_processes(self) -> dict[str, _Process]:
        threads, made = self.threads, {}
        names = sorted({device.task for device in self.device}, key=_split_task_number)
        for name in names:
            where = f"{shorten_task(name)} " if len(names) > 1 else ""
            size = 1 if threads.inter_op == -1 and len(self.graph.devices) == 1 else max(threads.inter_op, 0)
            title = "caller" if threads.inter_op == -1 and size == 1 else "inter-op"
            workers = [
                self.recorder.track(f"{where}{title} {i}" if title != "caller" else f"{where}caller", "worker", name)
                for i in range(size or threads.cores)
            ]
            intra_op_workers = [
                self.recorder.track(f"{where}intra-op {i}", "intra", name)
                for i in range(threads.intra_op_size if threads.intra_op_size > 1 else 0)
            ]
            pool = Pool(self.events, self.random, workers, self.pool_times, self.work_on)
            made[name] = _Process(name, Cores(self.events, threads.cores), IntraOpWorkers(intra_op_workers), pool)
        return made

    def _make_pools(self) -> dict[str, Pool]:
        """Make the pools of GPUs that TF_GPU_THREAD_MODE sets, by device."""
        mode, found = self.threads.gpu_thread_mode, {}
        gpus = [d for d in self.graph.placed.devices if d.type == "GPU" and d.name in self.graph.devices]
        if mode == "global":
            return {}
        shared: dict[str, Pool] = {}
        for gpu in gpus:
            process = gpu.task
            if mode == "gpu_shared" and process in shared:
                found[gpu.name] = shared[process]
                continue
            title = f"{gpu.short} launch" if mode == "gpu_private" else "GPU launch"
            tracks = [
                self.recorder.track(f"{title} {i}", "worker", process) for i in range(self.threads.gpu_thread_count)
            ]
            found[gpu.name] = Pool(self.events, self.random, tracks, self.pool_times, self.work_on)
            shared[process] = found[gpu.name]
        return found

    def _new_propagator(self) -> Propagator:
        keep, drop = self.recorder.keep, self.recorder.release
        return Propagator(self.graph, self.flow, keep, lambda payload: drop(payload, self.events.now, -1))

    # steps

    def run_steps(self) -> None:
        self._start_step()
        self.events.run()
        while arrived := self.collectives.give_up():
            self._run_collective(arrived)
            self.events.run()
        require_ended(self.graph, self.step_ends, self.threads.steps)

    def _start_step(self) -> None:
        self.propagator = self._new_propagator()
        self.rendezvous.start_step(self.step)
        self.collectives = CollectiveRuns(self.graph)
        self.ran = [0] * len(self.graph)
        self.types_ran = set()
        self.averages.start_step()
        self.is_over = False
        for activation in self.propagator.start():
            activation.ready_at = self.events.now
            self.pool_of[activation.node].schedule(activation, None)
        self._end_step_if_done()  # a graph without nodes is done at once

    def _end_step_if_done(self) -> None:
        if self.is_over or not self.propagator.is_done:
            return
        self.is_over = True
        end = max(self.events.now, self.streams.last_end)  # the step ends by waiting for the GPUs
        self.step_ends.append(end)
        self.recorder.end_step(end)
        self.step += 1
        if self.step < self.threads.steps:
            self.events.at(end + self.step_ns, self._start_step)

    # the loop of a worker

    def work_on(self, worker: Worker) -> None:
        """Run a worker until it has to wait for the end of an op, or has nothing to do."""
        while True:
            if self._pays(worker):
                return
            if not worker.inline:
                found = worker.pool.take(worker)
                if found is None:
                    return
                worker.inline.append(found)
                if self._pays(worker):
                    return
            activation = worker.inline.popleft()
            if self._begin(worker, activation):
                return

    def _pays(self, worker: Worker) -> bool:
        """Run the bookkeeping that a worker owes; return whether there was any."""
        if not worker.owed:
            return False
        work, worker.owed = worker.owed, 0
        process = self.processes[self.recorder.tracks[worker.track].owner]
        process.cores.run(self._contend(process, work), lambda: self.work_on(worker))
        return True

    def _begin(self, worker: Worker, activation: Activation) -> bool:
        """Start a node on a worker, or have it wait for its turn to launch; return whether it takes time."""
        asking = Asking(worker, activation)
        if self._launches(activation) and not self.turns.take(self._card(activation.node), asking):
            return True
        return self._run(worker, activation)

    def _launches(self, activation: Activation) -> bool:
        """Return whether a thread is about to put work on a GPU's stream."""
        node = activation.node
        return bool(self.device_ns[node]) and not activation.is_dead and self.device[node].type != "CPU"

    def _card(self, node: int) -> str:
        """Return the first logical GPU on the card that a node runs on, or its own device."""
        name = self.device[node].name
        return self.graph.placed.devices.cards.get(name, (name,))[0]

    def _hand_on_turn(self, card: str, span: int) -> None:
        """End the turn of a launch: who waits for it is next."""
        following = self.turns.hand_on(card)
        if following is None:
            return
        worker, activation = following

        def start() -> None:
            if not self._run(worker, activation, after=span):
                self.work_on(worker)

        self.events.at(self.events.now, start)

    def _run(self, worker: Worker, activation: Activation, after: int = -1) -> bool:
        """Run a node on a worker, which may have waited for the launch `after`; return whether it takes time."""
        node, now = activation.node, self.events.now
        runs = not activation.is_dead
        own, fetching = self._bookkeeping(node) if runs else (self.dead_ns, 0 if worker.was_dead else self.to_dead_ns)
        worker.was_dead = not runs
        work = self._contend(self.process_of[node], own) + fetching
        intra_op_workers: list[int] = []
        if runs:
            intra_op_workers = self._take_intra_op_workers(node)
            times = self.host_ns[node]
            share = times[min(self.ran[node], len(times) - 1)] // (len(intra_op_workers) + 1)
            if intra_op_workers:
                share = max(share, self.least_part_ns[node])
            self.ran[node] += 1
            self.types_ran.add(self.graph.nodes[node].op)
            work += share + (self.fork_ns if intra_op_workers else 0)
            self.averages.ran(node)
        span = self._worker_span(worker, activation, self._span_kind(node, runs), after)
        outputs = self.recorder.outputs(node, activation.payloads, now, span) if runs else []
        if work == 0 and not intra_op_workers:
            self._finish(worker, activation, outputs, span)
            return False
        left = [1 + len(intra_op_workers)]

        def part_done() -> None:
            left[0] -= 1
            if left[0] == 0 and self.later_ns[node] and runs:
                self._launch_more(worker, activation, outputs, span)
            elif left[0] == 0:
                self._finish(worker, activation, outputs, span)
                self.work_on(worker)

        cores = self.process_of[node].cores
        cores.run(work, part_done)
        for track in intra_op_workers:
            self._run_shard(track, activation, share, span, part_done)
        return True

    def _launch_more(self, worker: Worker, activation: Activation, outputs: list[object], first: int) -> None:
        """Start the first of a node's kernels, and launch the others while it runs."""
        now = self.events.now
        self.recorder.ends_at(first, now)
        self._enqueue_kernel(activation, first)
        span = self.recorder.add(
            Span(activation.node, worker.track, "launch", now, now, now, first, "dependency", self.step,
                 str(activation.iteration))
        )  # fmt: skip

        def done() -> None:
            self._finish(worker, activation, outputs, span)
            self.work_on(worker)

        self.process_of[activation.node].cores.run(self.later_ns[activation.node], done)

    def _bookkeeping(self, node: int) -> tuple[int, int]:
        """Return what the executor does for a node, and its wait for data and code, which no other thread prolongs."""
        if self.graph.nodes[node].role == "source":
            return 0, 0
        if self.ran[node]:
            return self.op_ns, 0
        is_new_code = self.graph.nodes[node].op not in self.types_ran
        return self.op_ns, self.first_ns + (self.code_ns if is_new_code else 0)

    def _contend(self, process: _Process, work: int) -> int:
        """Return how long bookkeeping takes while other threads of its process are busy, or are not."""
        return round(work * self.contention) if process.cores.is_busy else work

    def _take_intra_op_workers(self, node: int) -> list[int]:
        """Take free threads of the intra-op pool for a kernel that can be split."""
        shards = min(self.estimated.kernels[node].shards, self.threads.intra_op_size)
        if shards < 2 or self.device[node].type != "CPU":
            return []
        return self.process_of[node].intra_op_workers.take(shards - 1)

    def _run_shard(self, track: int, activation: Activation, work: int, op: int, then: object) -> None:
        process, now = self.process_of[activation.node], self.events.now
        span = self.recorder.add(
            Span(activation.node, track, "shard", now, now, now, op, "dependency", self.step, str(activation.iteration))
        )

        def done() -> None:
            self.recorder.ends_at(span, self.events.now)
            process.intra_op_workers.give_back(track)
            assert callable(then), "a shard reports to its op"
            then()

        process.cores.run(work, done)

    def _span_kind(self, node: int, runs: bool) -> SpanKind:
        if not runs:
            return "dead"
        return "launch" if self.device_ns[node] else "op"

    def _worker_span(self, worker: Worker, activation: Activation, kind: SpanKind, after: int) -> int:
        now, ready = self.events.now, activation.ready_at
        why: Why = "start" if activation.released_by < 0 else "dependency"
        cause = activation.released_by
        if after >= 0:
            why, cause = "launch", after
        elif now > ready:
            why = "thread"
            cause = worker.last_span if worker.last_time == now else cause
        return self.recorder.add(
            Span(activation.node, worker.track, kind, now, now, ready, cause, why, self.step, str(activation.iteration))
        )

    def _finish(self, worker: Worker, activation: Activation, outputs: list[object], span: int) -> None:
        """End a node on its worker: what it enqueues, what it sends, what it makes ready."""
        now, node = self.events.now, activation.node
        self.recorder.ends_at(span, now)
        worker.last_span, worker.last_time = span, now
        if not activation.is_dead:
            worker.owed += self.after_ns[node] + self._sharing(worker, node)
        if self._launches(activation):
            self._hand_on_turn(self._card(node), span)
        if self.is_receive[node]:
            self.rendezvous.post_receive(activation, worker, span)
            return
        if node in self.collective_of:
            self._join_collective(activation, outputs, worker, span)
            return
        if self.graph.nodes[node].role == "send":
            self.rendezvous.send(activation, worker, span)
        elif self.device_ns[node] and not self.later_ns[node] and not activation.is_dead:
            self._enqueue_kernel(activation, span)
        self._node_done(activation, outputs, worker, span)

    def _sharing(self, worker: Worker, node: int) -> int:
        """Return what it costs that another thread was the last one to touch what they share."""
        process = self.process_of[node]
        is_shared = process.last is not None and process.last is not worker
        process.last = worker
        return self.shared_ns if is_shared else 0

    def _node_done(self, activation: Activation, outputs: list[object], worker: Worker | None, span: int) -> None:
        now = self.events.now
        for slot in self.propagator.delivers(activation):
            payload = outputs[slot] if slot < len(outputs) else None
            if isinstance(payload, Buffer):
                payload.uses += 1
        ready = self.propagator.done(activation, outputs)
        is_send = self.graph.nodes[activation.node].role == "send"
        for payload in (*outputs, *(() if is_send else activation.payloads.values())):
            self.recorder.release(payload, now, span)
        for one in ready:
            one.ready_at, one.released_by = now, span
        self._schedule_ready(ready, worker)
        self._end_step_if_done()

    def _schedule_ready(self, ready: list[Activation], worker: Worker | None) -> None:
        """Keep cheap nodes here, dispatch expensive ones but the last; without a worker dispatch all."""
        if worker is None:
            for one in ready:
                self.pool_of[one.node].schedule(one, None)
            return
        dispatched: list[Activation] = []
        last: Activation | None = None
        for one in ready:
            elsewhere = self.pool_of[one.node] is not worker.pool
            if elsewhere:
                dispatched.append(one)
            elif self.in_caller or one.is_dead or not self.averages.decide(one.node):
                worker.inline.append(one)
            else:
                if last is not None:
                    dispatched.append(last)
                last = one
        if last is not None:
            (dispatched if worker.inline else worker.inline).append(last)
        for one in dispatched:
            self.pool_of[one.node].schedule(one, worker)

    # what is asynchronous

    def _enqueue_kernel(self, activation: Activation, launch: int) -> None:
        """Put a kernel on its GPU's stream: when it runs is known at once."""
        node, device, now = activation.node, self.device[activation.node], self.events.now
        stream = self.streams.compute(device)
        on_card = tuple(map(self.streams.compute, self.on_card.get(device.name, ())))
        start = start_on(stream, now, launch, on_card, "stream")
        stream.free_at = start.time + self.device_ns[node]
        stream.last_span = self.recorder.add(
            Span(node, stream.track, "kernel", start.time, stream.free_at, now, start.cause, start.why, self.step,
                 str(activation.iteration))
        )  # fmt: skip

    def _join_collective(self, activation: Activation, outputs: list[object], worker: Worker, span: int) -> None:
        """Add a member to its collective: the last starts the collective; one on a dead branch is done at once."""
        arrived = self.collectives.add(Arrival(activation, outputs, self.events.now, span))
        if activation.is_dead:
            self._node_done(activation, outputs, worker, span)
        if arrived:
            self._run_collective(arrived)

    def _run_collective(self, arrived: list[Arrival]) -> None:
        """Start a collective on the streams of all its members at once, when each of them is free."""
        devices = [self.device[one.activation.node] for one in arrived]
        computes = tuple(self.streams.compute(device) for device in devices if device.type != "CPU")

        def ended(spans: list[int]) -> None:
            self.events.at(self.events.now + (self.poll_ns if computes else 0), lambda: seen(spans))

        def seen(spans: list[int]) -> None:
            for one, span in zip(arrived, spans, strict=True):
                self._node_done(one.activation, one.outputs, None, span)

        streams = [self.streams.collective(device) for device in devices]
        self.queues.enqueue_collective(arrived, streams, computes, self.step, ended)

    def _received(self, receive: Activation, outputs: list[object], worker: Worker | None, span: int) -> None:
        """End a receive: whoever completes it dispatches all that it made ready."""
        now = self.events.now
        for _ in self.propagator.delivers(receive):
            if isinstance(outputs[0], Buffer):
                outputs[0].uses += 1
        ready = self.propagator.done(receive, outputs)
        self.recorder.release(outputs[0], now, span)
        for one in ready:
            one.ready_at, one.released_by = now, span
            self.pool_of[one.node].schedule(one, worker)
        self._end_step_if_done()


def _pool_times(overheads: Overheads) -> PoolTimes:
    return PoolTimes(
        _to_nanoseconds(overheads.hand_off_s),
        _to_nanoseconds(overheads.dispatch_s),
        _to_nanoseconds(overheads.wake_s),
        _to_nanoseconds(overheads.queue_s),
        _to_nanoseconds(overheads.spin_s),
        overheads.spin_spread,
        _to_nanoseconds(overheads.spin_hand_off_s),
        tuple(
            (_to_nanoseconds(idle), _to_nanoseconds(hand_off), _to_nanoseconds(wake))
            for idle, hand_off, wake in overheads.parked_s
        ),
    )


def _to_nanoseconds(seconds: float) -> int:
    return round(1e9 * seconds)


def _split_task_number(name: str) -> tuple[str, int]:
    head, _, number = name.rpartition(":")
    return head, int(number) if number.isdecimal() else 0
