"""Find the nodes that become ready: pending counts, frames, iterations and dead branches.

Mirrors tensorflow/core/common_runtime/propagator_state.cc. TensorFlow keeps one such state a device; here one state
serves all devices, so a loop over several devices counts its parallel iterations once for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from simplace.executor.control_flow import DEAD, LIVE, ControlFlow
from simplace.graph.builder import CONTROL
from simplace.graph.op_kinds import is_merge
from simplace.partition.graph_partition import PartEdge, PartitionedGraph

Payload = object  # what travels along a data edge; the propagator only carries it


@dataclass(slots=True, eq=False)
class Frame:
    """Record of a loop that runs.

    `iterations` maps a number to a running iteration; `entry` counts how often the loop was entered before, which is
    -1 until a Switch of the loop asks.
    """

    name: str
    parent: Iteration | None
    waiting_enters: int
    parallel: int
    iterations: dict[int, Iteration] = field(default_factory=dict)
    newest: int = 0
    entry: int = -1
    deferred: list[tuple[int, Payload]] = field(default_factory=list)
    constants: list[tuple[int, Payload, bool]] = field(default_factory=list)
    dead_exits: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Iteration:
    """Record of the counts of one iteration of a frame; `taken` has the output taken of each branch decided in it."""

    frame: Frame
    number: int
    pending: dict[int, int] = field(default_factory=dict)
    dead: dict[int, int] = field(default_factory=dict)
    payloads: dict[int, dict[int, Payload]] = field(default_factory=dict)
    children: dict[int, Frame] = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)
    running: int = 0
    open_frames: int = 0

    def __str__(self) -> str:
        outer = f"{self.frame.parent}" if self.frame.parent is not None else ""
        own = f"{self.frame.name}:{self.number}" if self.frame.name else ""
        return f"{outer}/{own}" if outer and own else own


@dataclass(slots=True, eq=False)
class Activation:
    """Record of one execution of a node, with the payload of each input slot that has one.

    `ready_at` and `released_by` are the executor's own notes.
    """

    node: int
    iteration: Iteration
    is_dead: bool
    payloads: dict[int, Payload]
    ready_at: int = 0
    released_by: int = -1


class Propagator:
    """Run the counts of one step.

    `on_keep` is called for a use of a payload that the executor could not foresee in `delivers`: a frame keeps what a
    constant Enter brings, and hands it to every iteration; `on_drop` of what the frame no longer keeps.
    """

    def __init__(
        self,
        graph: PartitionedGraph,
        flow: ControlFlow,
        on_keep: Callable[[Payload], None],
        on_drop: Callable[[Payload], None],
    ) -> None:
        self._graph = graph
        self._flow = flow
        self._on_keep = on_keep
        self._on_drop = on_drop
        self._ops = [node.op for node in graph.nodes]
        self._merges = {i for i, op in enumerate(self._ops) if is_merge(op)}
        self._initial = [self._initial_count(i) for i in range(len(graph))]
        self._data_inputs = [sum(e.dst_slot != CONTROL for e in into) for into in graph.ins]
        self._entered = [0] * len(flow.loops)
        self._decided = [0] * len(flow.branches)
        self._root = Frame("", None, 0, 1)
        self._root.iterations[0] = Iteration(self._root, 0)

    def start(self) -> list[Activation]:
        """Return the roots of the step: the `_SOURCE` of each device."""
        root = self._root.iterations[0]
        root.running = len(self._graph.sources)
        return [Activation(i, root, False, {}) for i in self._graph.sources]

    @property
    def is_done(self) -> bool:
        """Return whether nothing runs any more."""
        root = self._root.iterations[0]
        return root.running == 0 and root.open_frames == 0

    def done(self, activation: Activation, outputs: list[Payload]) -> list[Activation]:
        """Finish a node; return the nodes that became ready, in the executor's order.

        `outputs` holds a payload an output slot. A payload that no consumer takes is not reported anywhere.
        """
        ready: list[Activation] = []
        node, here = activation.node, activation.iteration
        live = self._live(activation)
        kind = self._flow.role[node]
        if kind is None:
            self._activate(node, here, live, outputs, ready)
        elif kind == "enter":
            self._enter(node, here, live, outputs, ready)
        elif kind == "exit":
            self._exit(node, here, live, outputs, ready)
        else:
            self._next_iteration(node, here, live, outputs, ready)
        here.running -= 1
        self._clean_up(here, ready)
        return ready

    def delivers(self, activation: Activation) -> list[int]:
        """Return the slot of each data edge that will carry a live value; an executor counts consumers with it."""
        live = self._live(activation)
        if live == DEAD:
            return []
        edges = self._graph.outs[activation.node]
        return [e.src_slot for e in edges if e.dst_slot != CONTROL and live in (LIVE, e.src_slot)]

    def _live(self, activation: Activation) -> int:
        node, here = activation.node, activation.iteration
        if activation.is_dead:
            return DEAD
        if (loop := self._flow.loop_of_switch.get(node)) is not None:
            return self._continue_loop(loop, here)
        if (branch := self._flow.branch_of_switch.get(node)) is not None:
            return self._take_branch(branch, here)
        return LIVE

    def _continue_loop(self, loop: int, here: Iteration) -> int:
        """Return 1 where the loop goes on in an iteration, 0 where it ends."""
        if here.frame.entry < 0:
            here.frame.entry = self._entered[loop]
            self._entered[loop] += 1
        return int(here.number < self._flow.loops[loop].trips_at(here.frame.entry))

    def _take_branch(self, branch: int, here: Iteration) -> int:
        """Return the output taken in an iteration: all Switches on a predicate take the same."""
        if branch not in here.taken:
            here.taken[branch] = self._flow.branches[branch].taken_at(self._decided[branch], here.number)
            self._decided[branch] += 1
        return here.taken[branch]

    def _initial_count(self, node: int) -> int:
        edges = self._graph.ins[node]
        if node not in self._merges:
            return len(edges)
        return 2 * sum(edge.dst_slot == CONTROL for edge in edges) + 1

    def _activate(
        self, node: int, target: Iteration, live: int, outputs: list[Payload], ready: list[Activation]
    ) -> None:
        for edge in self._graph.outs[node]:
            is_live = live == LIVE or live == edge.src_slot or (edge.dst_slot == CONTROL and live != DEAD)
            payload = outputs[edge.src_slot] if is_live and 0 <= edge.src_slot < len(outputs) else None
            self._deliver(edge, target, is_live, payload, ready)

    def _deliver(
        self, edge: PartEdge, target: Iteration, is_live: bool, payload: Payload, ready: list[Activation]
    ) -> None:
        node = edge.dst
        pending = target.pending.get(node, self._initial[node])
        dead = target.dead.get(node, 0)
        if node in self._merges:
            pending, dead, is_ready, is_dead = self._merge_counts(edge, target, pending, dead, is_live)
        else:
            pending -= 1
            dead += not is_live
            is_ready, is_dead = pending == 0, dead > 0
        target.pending[node] = pending
        if dead:
            target.dead[node] = dead
        if payload is not None:
            target.payloads.setdefault(node, {})[edge.dst_slot] = payload
        if is_ready:
            target.running += 1
            ready.append(Activation(node, target, is_dead, target.payloads.pop(node, {})))

    def _merge_counts(
        self, edge: PartEdge, target: Iteration, pending: int, dead: int, is_live: bool
    ) -> tuple[int, int, bool, bool]:
        """Count for a Merge: the first live input makes it ready; it is dead once all inputs are."""
        inputs = self._data_inputs[edge.dst]
        if edge.dst_slot == CONTROL:
            pending -= 2
            is_dead = dead == inputs
            return pending, dead, pending == 0 or (pending == 1 and is_dead), is_dead
        if is_live:
            first = pending & 1
            return pending - first, dead, bool(first) and pending == 1, False
        dead += 1
        # An Enter that is dead makes its loop dead, though the NextIteration will never come.
        is_dead = dead == inputs or self._flow.role[edge.src] == "enter"
        return pending, dead, pending == 1 and is_dead, is_dead

    def _enter(self, node: int, here: Iteration, live: int, outputs: list[Payload], ready: list[Activation]) -> None:
        frame = self._child_frame(node, here)
        first = frame.iterations[0]
        if self._flow.is_constant[node]:
            for payload in outputs:
                frame.constants.append((node, payload, live == DEAD))
                self._on_keep(payload)
            for i, iteration in enumerate(list(frame.iterations.values())):
                if i:
                    self._keep_for_consumers(node, outputs, live)
                self._activate(node, iteration, live, outputs, ready)
        else:
            self._activate(node, first, live, outputs, ready)
        frame.waiting_enters -= 1
        self._clean_up(first, ready)

    def _child_frame(self, node: int, here: Iteration) -> Frame:
        group = self._flow.frame_of_enter[node]
        if group not in here.children:
            name, enters, parallel = self._flow.frames[group]
            frame = Frame(name, here, enters, parallel)
            frame.iterations[0] = Iteration(frame, 0)
            here.children[group] = frame
            here.open_frames += 1
        return here.children[group]

    def _exit(self, node: int, here: Iteration, live: int, outputs: list[Payload], ready: list[Activation]) -> None:
        frame = here.frame
        if live != DEAD:
            assert frame.parent is not None, "an Exit runs inside a frame"
            self._activate(node, frame.parent, live, outputs, ready)
        elif here.number == frame.newest:
            frame.dead_exits.append(node)

    def _next_iteration(
        self, node: int, here: Iteration, live: int, outputs: list[Payload], ready: list[Activation]
    ) -> None:
        frame = here.frame
        if live == DEAD:
            return
        if here.number == frame.newest:
            if len(frame.iterations) >= frame.parallel:
                frame.deferred.append((node, outputs[0] if outputs else None))
                return
            self._start_iteration(frame, ready)
        self._activate(node, frame.iterations[here.number + 1], live, outputs, ready)

    def _start_iteration(self, frame: Frame, ready: list[Activation]) -> None:
        frame.newest += 1
        made = frame.iterations[frame.newest] = Iteration(frame, frame.newest)
        frame.dead_exits.clear()
        deferred, frame.deferred = frame.deferred, []
        for node, payload in deferred:
            self._activate(node, made, LIVE, [payload], ready)
        for node, payload, is_dead in frame.constants:
            self._keep_for_consumers(node, [payload], DEAD if is_dead else LIVE)
            self._activate(node, made, DEAD if is_dead else LIVE, [payload], ready)

    def _keep_for_consumers(self, node: int, outputs: list[Payload], live: int) -> None:
        for edge in self._graph.outs[node] if live != DEAD else ():
            if 0 <= edge.src_slot < len(outputs):
                self._on_keep(outputs[edge.src_slot])

    def _clean_up(self, at: Iteration, ready: list[Activation]) -> None:
        """Drop finished iterations, start deferred ones, and leave the frame once all are done."""
        frame = at.frame
        if frame.parent is None:
            return
        number = at.number
        while number in frame.iterations and self._is_done(frame, number):
            del frame.iterations[number]
            number += 1
            if frame.deferred:
                self._start_iteration(frame, ready)
        if frame.waiting_enters == 0 and not frame.iterations:
            self._leave(frame, ready)

    def _is_done(self, frame: Frame, number: int) -> bool:
        at = frame.iterations[number]
        if at.running or at.open_frames:
            return False
        return frame.waiting_enters == 0 if number == 0 else number - 1 not in frame.iterations

    def _leave(self, frame: Frame, ready: list[Activation]) -> None:
        parent = frame.parent
        assert parent is not None, "the root frame is never left"
        for node in frame.dead_exits:
            self._activate(node, parent, DEAD, [], ready)
        frame.dead_exits.clear()
        for _, payload, _ in frame.constants:
            self._on_drop(payload)
        frame.constants.clear()
        parent.open_frames -= 1
        self._clean_up(parent, ready)
