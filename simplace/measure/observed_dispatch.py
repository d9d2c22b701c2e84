"""Which runs of a traced step the executor dispatched to another thread, by when each of them was scheduled.

What takes about as long as the limit of expensive ops changes sides within a step, from one iteration to the next.
A run that goes on where its thread just ended a node is scheduled between that node's kernel and its end; one that was
dispatched, after the end (`ProcessInline` and `ScheduleReady` of tensorflow/core/common_runtime/executor.cc).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter

from simplace.measure.measurement import NodeRun


def observe_dispatches(runs: Sequence[NodeRun], inputs: Mapping[str, Collection[str]]) -> dict[str, list[bool | None]]:
    """Map each node to what became of each of its runs, by start: True where it was dispatched to another thread.

    False where it ran on the thread that made it ready, after others. None where it ran there at once: a cheap node may
    do so, and the last one of expensive nodes. `runs` are by start, `inputs` has the nodes that each node waits for.
    """
    by_end = sorted(runs, key=attrgetter("end"))
    ends = [run.end for run in by_end]
    followed: set[int] = set()
    found: dict[str, list[bool | None]] = {}
    for run in runs:
        ended = range(bisect_left(ends, run.scheduled), bisect_right(ends, run.start))
        before = next((i for i in ended if i not in followed and by_end[i].kernel_end <= run.scheduled), None)
        own = found.setdefault(run.name, [])
        if before is None:
            own.append(True)
        else:
            followed.add(before)
            own.append(None if by_end[before].name in inputs.get(run.name, ()) else False)
    return found
