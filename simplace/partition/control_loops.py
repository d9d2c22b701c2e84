"""Make loops and branches ready for several devices.

Mirrors the first half of tensorflow/core/graph/graph_partition.cc. Switch, Exit, Enter and NextIteration move to the
device of their neighbour, whatever the placer said. A loop with an edge between devices gets a control loop on each
device that receives something: it signals each new iteration to the device. Where a node has more than eight edges, the
first of them is for TensorFlow a matter of addresses.
"""

from __future__ import annotations

from dataclasses import dataclass

from simplace.graph.builder import CONTROL
from simplace.graph.control_flow_info import ROOT, build_control_flow_info, name_frame
from simplace.graph.dtypes import DataType, is_ref
from simplace.graph.node_def import TensorInfo
from simplace.graph.op_kinds import CONTROL_FLOW, MERGES, is_enter, is_exit, is_loop_cond, is_next_iteration, is_switch
from simplace.partition.rewritten_graph import Draft, Edge
from simplace.program.placed_graph import PlacedGraph

CONTROL_LOOP = "_cloop"
_MOVED = CONTROL_FLOW - MERGES
_SOURCE = 0
_FLOAT = DataType.DT_FLOAT


def may_apply(placed: PlacedGraph) -> bool:
    """Return whether the graph uses more than one device and has nodes of a loop or a branch."""
    used = set(placed.device_of) - {""}
    return len(used) > 1 and not _MOVED.isdisjoint(placed.graph.ops)


def move_to_neighbours(draft: Draft) -> None:
    """Move Switch and Exit to the device of their input, Enter and NextIteration to that of their first consumer."""
    out_edges, data_input = _collect_neighbours(draft)
    visited = [False] * len(draft.names)
    stack = [_SOURCE]
    while stack:
        node = stack.pop()
        if visited[node]:
            continue
        visited[node] = True
        _move_node(draft, node, out_edges[node], data_input)
        stack += [edge[2] for edge in out_edges[node] if not visited[edge[2]]]


def _collect_neighbours(draft: Draft) -> tuple[list[list[Edge]], dict[int, int]]:
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
    for node in draft.op_ids:
        if not has_input[node] and node not in draft.removed:
            out_edges[_SOURCE].append((_SOURCE, CONTROL, node, CONTROL))
    return out_edges, data_input


def _move_node(draft: Draft, node: int, outs: list[Edge], data_input: dict[int, int]) -> None:
    op = draft.ops[node]
    if is_switch(op) or is_exit(op):
        draft.devices[node] = draft.devices[data_input[node]]
    elif is_next_iteration(op) or (is_enter(op) and not is_ref(draft.in_types[node][0])):
        first = next((edge[2] for edge in outs if edge[1] != CONTROL), None)
        if first is not None:
            draft.devices[node] = draft.devices[first]


@dataclass(frozen=True, slots=True)
class _ControlLoop:
    enter: int
    merge: int


class ControlLoops:
    """Add the control loops of a draft."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        out_edges, _ = _collect_neighbours(draft)
        self._info = build_control_flow_info(draft.ops, lambda node: [edge[2] for edge in out_edges[node]], [_SOURCE])
        self._frames, self._around = self._info.frame, self._info.parent_frame
        self._frame_names = {ROOT: "", **{enter: name_frame(draft.attrs[enter]) for enter in self._around}}
        self._conditions = {
            self._frame_names[frame]: node
            for node, frame in enumerate(self._frames)
            if frame != ROOT and is_loop_cond(draft.ops[node])
        }
        self._loops: dict[tuple[str, str], _ControlLoop] = {}
        self._names = 0

    def add(self) -> None:
        """Add them all; a frame without a LoopCond gets none, and TensorFlow could not run it on several devices."""
        for edge in list(self._draft.edges):
            if self._crosses(edge) and (frame := self._frame_of(edge)) != ROOT:
                self._add_for(edge, frame)
        for edge in list(self._draft.edges):
            if self._crosses(edge) and (frame := self._frame_of(edge)) != ROOT:
                loop = self._loops.get((self._frame_names[frame], self._draft.devices[edge[2]]))
                if loop is not None:
                    self._draft.add_control_edge(loop.merge, edge[2])

    def _crosses(self, edge: Edge) -> bool:
        src, _, dst, _ = edge
        if src < 2 or dst < 2 or src in self._draft.removed or dst in self._draft.removed:
            return False
        return self._draft.devices[src] != self._draft.devices[dst]

    def _frame_of(self, edge: Edge) -> int:
        """Return the frame that both ends of an edge are in, `ROOT` also for two frames."""
        src, _, dst, _ = edge
        start = self._info.frame_behind(src, self._draft.ops[src])
        end = self._info.frame_before(dst, self._draft.ops[dst])
        return start if self._frame_names[start] == self._frame_names[end] else ROOT

    def _add_for(self, edge: Edge, innermost: int) -> None:
        """Add the control loops on the device that an edge leads to, from its frame outwards."""
        near = edge[2]
        device = self._draft.devices[near]
        inner: _ControlLoop | None = None
        frame = innermost
        while frame != ROOT:
            name = self._frame_names[frame]
            known = self._loops.get((name, device))
            if known is not None:
                self._feed(inner, known.merge)
                return
            if name not in self._conditions:
                return
            loop = self._loops[name, device] = self._loop(near, frame)
            self._feed(inner, loop.merge)
            inner, frame = loop, self._around[frame]
        if inner is not None:
            attrs = {"dtype": _FLOAT, "value": TensorInfo(_FLOAT, (0,))}
            name = self._new_name(near, "")
            start = self._draft.add_node(name, "Const", device, attrs, ((), (_FLOAT,)), near=near)
            self._feed(inner, start)
            self._note_frame(start, ROOT)

    def _feed(self, loop: _ControlLoop | None, source: int) -> None:
        if loop is not None:
            self._draft.add_edge(source, 0, loop.enter, 0)

    def _loop(self, near: int, frame: int) -> _ControlLoop:
        """Make Enter, Merge, Switch and NextIteration, the Switch on the loop's own condition."""
        draft, device = self._draft, self._draft.devices[near]
        pair = (_FLOAT, _FLOAT)
        parallel = draft.attrs[frame].get("parallel_iterations", 10)
        into = {"T": _FLOAT, "frame_name": self._frame_names[frame].encode(), "parallel_iterations": parallel}
        names = [self._new_name(near, CONTROL_LOOP) for _ in range(4)]
        of_type = {"T": _FLOAT}
        enter = draft.add_node(names[0], "Enter", device, into, ((_FLOAT,), (_FLOAT,)), near=near)
        merge = draft.add_node(
            names[1], "Merge", device, {**of_type, "N": 2}, (pair, (_FLOAT, DataType.DT_INT32)), near=near
        )
        switch = draft.add_node(names[2], "Switch", device, of_type, ((_FLOAT, DataType.DT_BOOL), pair), near=near)
        onward = draft.add_node(names[3], "NextIteration", device, of_type, ((_FLOAT,), (_FLOAT,)), near=near)
        draft.add_edge(merge, 0, switch, 0)
        draft.add_edge(self._conditions[self._frame_names[frame]], 0, switch, 1)
        draft.add_edge(switch, 1, onward, 0)
        draft.add_edge(enter, 0, merge, 0)
        draft.add_edge(onward, 0, merge, 1)
        draft.loop_merges.add(merge)
        for node in (enter, merge, switch, onward):
            self._note_frame(node, frame)
        return _ControlLoop(enter, merge)

    def _note_frame(self, node: int, frame: int) -> None:
        assert node == len(self._frames), "nodes are noted in the order they are made"
        self._frames.append(frame)

    def _new_name(self, near: int, prefix: str) -> str:
        self._names += 1
        return f"{prefix}{self._draft.names[near]}/_{self._names}"
