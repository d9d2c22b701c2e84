"""The loop frame that each node runs in.

Mirrors `BuildControlFlowInfo` of tensorflow/core/graph/control_flow.cc: the Enter that is met first, by breadth from
the source, stands for its frame; an Exit is in the frame that it leaves. Of inputs from different frames, which
TensorFlow refuses, the first counts; `find_mixed_frames` finds them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from simplace.graph.op_kinds import is_enter, is_exit

ROOT = -1  # the frame of what is in no loop


@dataclass(frozen=True, slots=True)
class ControlFlowInfo:
    """Record of the frame of each node, and of the frame around each frame.

    A frame is the id of an Enter, or `ROOT`; nodes that cannot be reached are in `ROOT`, too. `first_input` is, in the
    order of the walk, the node from which each node was met, -1 for a source.
    """

    frame: list[int]
    parent_frame: dict[int, int]
    first_input: dict[int, int]

    def frame_behind(self, node: int, op: str) -> int:
        """Return the frame of what a node gives: an Exit leaves its own."""
        frame = self.frame[node]
        return self.parent_frame.get(frame, ROOT) if is_exit(op) else frame

    def frame_before(self, node: int, op: str) -> int:
        """Return the frame of what a node takes: an Enter opens its own."""
        frame = self.frame[node]
        return self.parent_frame.get(frame, ROOT) if is_enter(op) else frame


@dataclass(frozen=True, slots=True)
class MixedFrames:
    """Record of a node whose inputs are in frames of different names: the input that disagrees, and the first one."""

    node: int
    src: int
    src_frame: str
    first: int
    first_frame: str


def build_control_flow_info(
    ops: Sequence[str], successors: Callable[[int], Iterable[int]], sources: Iterable[int]
) -> ControlFlowInfo:
    """Return the frames of a graph, given by the op of each node and the nodes behind it.

    >>> ops = ["Const", "Enter", "Neg", "Exit", "Neg"]
    >>> build_control_flow_info(ops, lambda node: range(node + 1, min(node + 2, len(ops))), [0]).frame
    [-1, 1, 1, 1, -1]
    """
    frames = [ROOT] * len(ops)
    parents: dict[int, int] = {}
    ready = deque(sources)
    first_input = dict.fromkeys(ready, -1)
    info = ControlFlowInfo(frames, parents, first_input)
    while ready:
        node = ready.popleft()
        frame = info.frame_behind(node, ops[node])
        for after in successors(node):
            if after in first_input:
                continue
            first_input[after] = node
            ready.append(after)
            frames[after] = frame
            if is_enter(ops[after]):
                frames[after], parents[after] = after, frame
    return info


def name_frame(attrs: Mapping[str, object]) -> str:
    """Return the name of the frame that an Enter of these attributes opens, "" if it names none."""
    name = attrs.get("frame_name", b"")
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def find_mixed_frames(
    ops: Sequence[str],
    successors: Callable[[int], Iterable[int]],
    info: ControlFlowInfo,
    frame_name: Callable[[int], str],
) -> MixedFrames | None:
    """Return what TensorFlow refuses first, in the order of its walk; None if all inputs of each node share a frame.

    Frames of one name are one. An Enter is in the frame that it opens; its inputs are in the frame around that.

    >>> ops = ["Const", "Enter", "Const", "Add"]
    >>> behind = [[1], [3], [3], []].__getitem__
    >>> info = build_control_flow_info(ops, behind, [0, 2])
    >>> find_mixed_frames(ops, behind, info, lambda enter: "loop")
    MixedFrames(node=3, src=1, src_frame='loop', first=2, first_frame='')
    """
    names = {ROOT: "", **{enter: frame_name(enter) for enter in info.parent_frame}}
    for node in info.first_input:
        frame = names[info.frame_behind(node, ops[node])]
        for after in successors(node):
            wanted = names[info.frame_before(after, ops[after])]
            if frame != wanted:
                return MixedFrames(after, node, frame, info.first_input[after], wanted)
    return None
