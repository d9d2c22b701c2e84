"""How long ops waited, and for what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simplace.executor.trace import Trace, Why

CAUSES: tuple[Why, ...] = ("dependency", "thread", "launch", "stream", "link", "member")


@dataclass(frozen=True, slots=True)
class Wait:
    """Sum up the waiting of one node over its executions, in nanoseconds by cause.

    "dependency" runs from the start of the step until the inputs were there, the others from there to the start.
    """

    node: int
    by_cause: Mapping[Why, int]

    @property
    def held_up(self) -> int:
        """Return the waiting after the inputs were there."""
        return sum(time for cause, time in self.by_cause.items() if cause != "dependency")


def list_waits(trace: Trace) -> tuple[Wait, ...]:
    """Return the waiting time of each node that ran, the longest first, then by node."""
    starts = (0, *trace.steps)
    found: dict[int, dict[Why, int]] = {}
    for span in trace.spans:
        if span.kind == "shard":
            continue
        causes = found.setdefault(span.node, {})
        if span.kind in ("op", "launch", "dead"):
            causes["dependency"] = causes.get("dependency", 0) + max(0, span.ready - starts[span.step])
        if span.start > span.ready:
            causes[span.why] = causes.get(span.why, 0) + span.start - span.ready
    listed = [Wait(node, causes) for node, causes in found.items()]
    return tuple(sorted(listed, key=lambda wait: (-wait.held_up, wait.node)))


def sum_by_cause(all_waits: tuple[Wait, ...]) -> dict[Why, int]:
    """Sum waits up by cause, in nanoseconds.

    >>> sum_by_cause((Wait(1, {"thread": 5}), Wait(2, {"thread": 1, "link": 2})))
    {'dependency': 0, 'thread': 6, 'launch': 0, 'stream': 0, 'link': 2, 'member': 0}
    """
    return {cause: sum(wait.by_cause.get(cause, 0) for wait in all_waits) for cause in CAUSES}
