"""How busy the links are that several GPUs or tasks share, and what sharing costs their copies and collectives."""

from __future__ import annotations

from dataclasses import dataclass

from simplace.analysis.intervals import measure_coverage
from simplace.executor.trace import PassedLink, Trace


@dataclass(frozen=True, slots=True)
class LinkUse:
    """Record of what passed a shared link: `copies`, `members` of collectives, and nanoseconds with any moving bytes.

    `share` is that of the whole run. `took` sums up how long each of them took, `alone` what they would take without
    the links that are shared.
    """

    link: PassedLink
    copies: int
    members: int
    busy: int
    share: float
    took: int
    alone: int

    @property
    def slowdown(self) -> float:
        """Return how many times as long all took as without what is shared, 1 where nothing passed."""
        return self.took / self.alone if self.alone else 1.0


def measure_links(trace: Trace) -> tuple[LinkUse, ...]:
    """Return the use of each shared link, in their order."""
    return tuple(_measure_use(trace, number) for number in range(len(trace.links)))


def _measure_use(trace: Trace, number: int) -> LinkUse:
    passed = {i: copy for i, copy in trace.shared.items() if any(way // 2 == number for way in copy.ways)}
    busy = measure_coverage((copy.moves_at, trace.spans[i].end) for i, copy in passed.items())
    took, alone = sum(trace.spans[i].duration for i in passed), sum(copy.alone for copy in passed.values())
    share = busy / trace.makespan if trace.makespan else 0.0
    members = sum(trace.spans[i].kind == "collective" for i in passed)
    return LinkUse(trace.links[number], len(passed) - members, members, busy, share, took, alone)
