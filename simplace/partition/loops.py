"""Make loops and branches ready for several devices.

Mirrors the first half of tensorflow/core/graph/graph_partition.cc and the frames of control_flow.cc. Switch, Exit,
Enter and NextIteration move to the device of their neighbour, whatever the placer said. A loop with an edge between
devices gets a control loop on each device that receives something: it tells the device of each new iteration.
Where a node has more than eight edges, the first of them is for TensorFlow a matter of addresses.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from simplace.graph.build import CONTROL
from simplace.graph.dtypes import DataType, is_ref
from simplace.graph.node_def import TensorInfo
from simplace.partition.draft import Draft, Edge
from simplace.placement.placement import Placement

CONTROL_LOOP = "_cloop"
_SWITCHES = ("Switch", "RefSwitch", "_SwitchN")
_EXITS = ("Exit", "RefExit")
_ENTERS = ("Enter", "RefEnter")
_NEXTS = ("NextIteration", "RefNextIteration")
_MOVED = frozenset((*_SWITCHES, *_EXITS, *_ENTERS, *_NEXTS))
_SOURCE, _SINK = 0, 1
_FLOAT = DataType.DT_FLOAT


def may_apply(placement: Placement) -> bool:
    """Say whether the graph uses more than one device and has nodes of a loop or a branch."""
    used = {decision.device for decision in placement.decisions.values()}
    return len(used) > 1 and not _MOVED.isdisjoint(placement.graph.ops)


def move_to_neighbours(draft: Draft) -> None:
    """Move Switch and Exit to the device of their input, Enter and NextIteration to that of their first consumer."""
    out_edges, data_input = _neighbours(draft)
    visited = [False] * len(draft.names)
    stack = [_SOURCE]
    while stack:
        node = stack.pop()
        if visited[node]:
            continue
        visited[node] = True
        _move(draft, node, out_edges[node], data_input)
        stack += [edge[2] for edge in out_edges[node] if not visited[edge[2]]]


def _neighbours(draft: Draft) -> tuple[list[list[Edge]], dict[int, int]]:
    """List the edges out of each node, and give the node behind input 0; roots hang on the source."""
    out_edges: list[list[Edge]] = [[] for _ in draft.names]
    has_input = [False] * len(draft.names)
    data_input: dict[int, int] = {}
    for edge in draft.edges:
        if edge[0] in draft.removed or edge[2] in draft.removed:
            continue
        out_edges[edge[0]].append(edge)
        has_input[edge[2]] = True
        if edge[3] == 0:
            data_input[edge[2]] = edge[0]
    for node in range(2, len(draft.names)):
        if not has_input[node] and node not in draft.removed:
            out_edges[_SOURCE].append((_SOURCE, CONTROL, node, CONTROL))
    return out_edges, data_input


def _move(draft: Draft, node: int, outs: list[Edge], data_input: dict[int, int]) -> None:
    op = draft.ops[node]
    if op in _SWITCHES or op in _EXITS:
        draft.devices[node] = draft.devices[data_input[node]]
    elif op in _NEXTS or (op in _ENTERS and not is_ref(draft.in_types[node][0])):
        first = next((edge[2] for edge in outs if edge[1] != CONTROL), None)
        if first is not None:
            draft.devices[node] = draft.devices[first]


@dataclass(frozen=True, slots=True)
class _Frame:
    """Hold a loop's frame: the Enter that was met first and the frame around it, None for the outermost."""

    name: str
    enter: int
    around: _Frame | None


@dataclass(frozen=True, slots=True)
class _ControlLoop:
    enter: int
    merge: int


class ControlLoops:
    """Add the control loops of a draft."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._frames = _frames(draft)
        self._conditions = {
            frame.name: node
            for node, frame in enumerate(self._frames)
            if frame is not None and draft.ops[node] == "LoopCond"
        }
        self._loops: dict[tuple[str, str], _ControlLoop] = {}
        self._names = 0

    def add(self) -> None:
        """Add them all; a frame without a LoopCond gets none, and TensorFlow could not run it on several devices."""
        for edge in list(self._draft.edges):
            if self._crosses(edge) and (frame := self._frame_of(edge)) is not None:
                self._add_for(edge, frame)
        for edge in list(self._draft.edges):
            if self._crosses(edge) and (frame := self._frame_of(edge)) is not None:
                loop = self._loops.get((frame.name, self._draft.devices[edge[2]]))
                if loop is not None:
                    self._draft.add_control_edge(loop.merge, edge[2])

    def _crosses(self, edge: Edge) -> bool:
        src, _, dst, _ = edge
        if src < 2 or dst < 2 or src in self._draft.removed or dst in self._draft.removed:
            return False
        return self._draft.devices[src] != self._draft.devices[dst]

    def _frame_of(self, edge: Edge) -> _Frame | None:
        """Return the frame that both ends of an edge are in, None for the root or for two frames."""
        src, _, dst, _ = edge
        start, end = self._frames[src], self._frames[dst]
        if self._draft.ops[src] in _EXITS:
            start = start.around if start else None
        if self._draft.ops[dst] in _ENTERS:
            end = end.around if end else None
        return start if start is not None and end is not None and start.name == end.name else None

    def _add_for(self, edge: Edge, innermost: _Frame) -> None:
        """Add the control loops on the device that an edge leads to, from its frame outwards."""
        near = edge[2]
        device = self._draft.devices[near]
        inner: _ControlLoop | None = None
        frame: _Frame | None = innermost
        while frame is not None:
            known = self._loops.get((frame.name, device))
            if known is not None:
                self._feed(inner, known.merge)
                return
            if frame.name not in self._conditions:
                return
            loop = self._loops[frame.name, device] = self._loop(near, frame)
            self._feed(inner, loop.merge)
            inner, frame = loop, frame.around
        if inner is not None:
            attrs = {"dtype": _FLOAT, "value": TensorInfo(_FLOAT, (0,))}
            name = self._new_name(near, "")
            start = self._draft.add_node(name, "Const", device, attrs, ((), (_FLOAT,)), near=near)
            self._feed(inner, start)
            self._note_frame(start, None)

    def _feed(self, loop: _ControlLoop | None, source: int) -> None:
        if loop is not None:
            self._draft.add_edge(source, 0, loop.enter, 0)

    def _loop(self, near: int, frame: _Frame) -> _ControlLoop:
        """Make Enter, Merge, Switch and NextIteration, the Switch on the loop's own condition."""
        draft, device = self._draft, self._draft.devices[near]
        pair = (_FLOAT, _FLOAT)
        parallel = draft.attrs[frame.enter].get("parallel_iterations", 10)
        into = {"T": _FLOAT, "frame_name": frame.name.encode(), "parallel_iterations": parallel}
        names = [self._new_name(near, CONTROL_LOOP) for _ in range(4)]
        of_type = {"T": _FLOAT}
        enter = draft.add_node(names[0], "Enter", device, into, ((_FLOAT,), (_FLOAT,)), near=near)
        merge = draft.add_node(
            names[1], "Merge", device, {**of_type, "N": 2}, (pair, (_FLOAT, DataType.DT_INT32)), near=near
        )
        switch = draft.add_node(names[2], "Switch", device, of_type, ((_FLOAT, DataType.DT_BOOL), pair), near=near)
        onward = draft.add_node(names[3], "NextIteration", device, of_type, ((_FLOAT,), (_FLOAT,)), near=near)
        draft.add_edge(merge, 0, switch, 0)
        draft.add_edge(self._conditions[frame.name], 0, switch, 1)
        draft.add_edge(switch, 1, onward, 0)
        draft.add_edge(enter, 0, merge, 0)
        draft.add_edge(onward, 0, merge, 1)
        draft.loop_merges.add(merge)
        for node in (enter, merge, switch, onward):
            self._note_frame(node, frame)
        return _ControlLoop(enter, merge)

    def _note_frame(self, node: int, frame: _Frame | None) -> None:
        assert node == len(self._frames), "nodes are noted in the order they are made"
        self._frames.append(frame)

    def _new_name(self, near: int, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._draft.names[near]}/_{self._names}"


def _frames(draft: Draft) -> list[_Frame | None]:
    """Give the frame of each node, None for the root frame; an Exit is in the frame that it leaves."""
    out_edges, _ = _neighbours(draft)
    frames: list[_Frame | None] = [None] * len(draft.names)
    seen = [False] * len(draft.names)
    ready = deque([_SOURCE])
    while ready:
        node = ready.popleft()
        frame = frames[node]
        if draft.ops[node] in _EXITS:
            frame = frame.around if frame else None
        for edge in out_edges[node]:
            after = edge[2]
            if seen[after] or after == _SINK:
                continue
            seen[after] = True
            frames[after] = _Frame(_frame_name(draft, after), after, frame) if draft.ops[after] in _ENTERS else frame
            ready.append(after)
    return frames


def _frame_name(draft: Draft, enter: int) -> str:
    name = draft.attrs[enter].get("frame_name", b"")
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)
