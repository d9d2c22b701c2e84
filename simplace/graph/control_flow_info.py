"""The loop frame that each node runs in.

Mirrors `BuildControlFlowInfo` of tensorflow/core/graph/control_flow.cc: the Enter that is met first, by breadth from
the source, stands for its frame; an Exit is in the frame that it leaves. Of inputs from different frames, which
TensorFlow refuses, the first counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from simplace.graph.op_kinds import is_enter, is_exit

ROOT = -1  # the frame of what is in no loop


@dataclass(frozen=True, slots=True)
class ControlFlowInfo:
    """Record of the frame of each node, and of the frame around each frame.

    A frame is the id of an Enter, or `ROOT`; nodes that cannot be reached are in `ROOT`, too.
    """

    frame: list[int]
    parent_frame: dict[int, int]


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
    seen = set(ready)
    while ready:
        node = ready.popleft()
        frame = frames[node]
        if is_exit(ops[node]):
            frame = parents.get(frame, ROOT)
        for after in successors(node):
            if after in seen:
                continue
            seen.add(after)
            ready.append(after)
            frames[after] = frame
            if is_enter(ops[after]):
                frames[after], parents[after] = after, frame
    return ControlFlowInfo(frames, parents)
