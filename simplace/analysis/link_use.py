"""How busy the links are that several GPUs or tasks share, and what sharing costs their copies."""

from __future__ import annotations

from dataclasses import dataclass

from simplace.analysis.intervals import measure_coverage
from simplace.executor.trace import PassedLink, Trace


@dataclass(frozen=True, slots=True)
class LinkUse:
    """Record of what passed a shared link: how many `copies`, and nanoseconds in which at least one moved bytes.

    `share` is that of the whole run. `took` sums up the lengths of the copies, `alone` what they would take
    without the links that are shared.
    """

    link: PassedLink
    copies: int
    busy: int
    share: float
    took: int
    alone: int

    @property
    def slowdown(self) -> float:
        """Return how many times as long the copies took as without what is shared, 1 where there are none."""
        return self.took / self.alone if self.alone else 1.0


def measure_links(trace: Trace) -> tuple[LinkUse, ...]:
    """Return the use of each shared link, in their order."""
    return tuple(_measure_use(trace, number) for number in range(len(trace.links)))


def _measure_use(trace: Trace, number: int) -> LinkUse:
    passed = {i: copy for i, copy in trace.shared.items() if any(way // 2 == number for way in copy.ways)}
    busy = measure_coverage((copy.moves_at, trace.spans[i].end) for i, copy in passed.items())
    took, alone = sum(trace.spans[i].duration for i in passed), sum(copy.alone for copy in passed.values())
    share = busy / trace.makespan if trace.makespan else 0.0
    return LinkUse(trace.links[number], len(passed), busy, share, took, alone)
