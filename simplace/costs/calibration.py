"""Read the executor's fixed times on this machine off the probes: small graphs that cost nothing else.

Nothing here looks at the graph that is measured. A step is a sum, so means are taken within a step, and the median over
steps; of single hand-offs the lower quartile counts, since what disturbs one only makes it longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Protocol

from simplace.costs.cost_model import Overheads

_DEAD_NODES = 50 * 12  # of the probe "dead"
_SPUN = 8000  # nanoseconds: a thread that spins is faster than that, waking one is slower


class Run(Protocol):
    """Say when a node held its thread, in nanoseconds."""

    @property
    def name(self) -> str:
        """Return the node's name."""
        ...

    @property
    def start(self) -> int:
        """Return when the executor picked the node."""
        ...

    @property
    def end(self) -> int:
        """Return when its outputs were propagated."""
        ...


Steps = Sequence[Sequence[Run]]


def overheads(probes: Mapping[str, Steps]) -> Overheads:
    """Return the fixed times, in seconds, as a trace of `SOFTWARE_TRACE` shows them."""
    hot = _gap(probes["loop"])
    dead = max(0.0, _between(probes["dead"]) - _between(probes["alive"])) / _DEAD_NODES
    small = _gap(probes["after 64"])
    dispatch, queue = _dispatch(probes["wide"], small)
    spin, spin_hand_off, hand_off, wake = _hand_offs([steps for name, steps in probes.items() if "beside" in name])
    after = [(_length(steps), max(0.0, _gap(steps) - hot)) for name, steps in probes.items() if "after" in name]
    return Overheads(
        op_s=hot / 1e9,
        hand_off_s=hand_off / 1e9,
        dead_s=dead / 1e9,
        dispatch_s=dispatch / 1e9,
        wake_s=wake / 1e9,
        queue_s=queue / 1e9,
        spin_s=spin / 1e9,
        spin_hand_off_s=spin_hand_off / 1e9,
        after_s=tuple(sorted((length / 1e9, more / 1e9) for length, more in after)),
    )


def _gap(steps: Steps) -> float:
    """Return the mean time between two nodes on one thread."""
    return median(fmean(after.start - before.end for before, after in pairwise(runs)) for runs in steps)


def _between(steps: Steps) -> float:
    """Return the time between nodes, summed up over a step."""
    return median(sum(after.start - before.end for before, after in pairwise(runs)) for runs in steps)


def _quartile(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 4]


def _length(steps: Steps) -> float:
    products = [run.end - run.start for runs in steps for run in runs if run.name.startswith("product")]
    return median(products)


def _dispatch(steps: Steps, gap: float) -> tuple[float, float]:
    """Return what each of three dispatched ops costs their thread, and what taking one from the queue costs."""
    pairs = [(before, after) for runs in steps for before, after in pairwise(runs)]
    kept = [b.start - a.end for a, b in pairs if a.name.startswith("join") and b.name.startswith("wide")]
    taken = [b.start - a.end for a, b in pairs if a.name.startswith("wide") and b.name.startswith("wide")]
    return max(0.0, median(kept) - gap) / 3, max(0.0, median(taken) - gap)


def _hand_offs(probes: Sequence[Steps]) -> tuple[float, float, float, float]:
    """Return how long a thread spins, until it has found work, until a parked one has, and what waking it costs."""
    idle_latency_cost = [found for steps in probes for runs in steps for found in _of_step(runs)]
    spinning = [one for one in idle_latency_cost if one[1] < _SPUN]
    parked = [one for one in idle_latency_cost if one[1] >= _SPUN]
    if not spinning or not parked:
        return 0.0, 0.0, _quartile([one[1] for one in idle_latency_cost]) if idle_latency_cost else 0.0, 0.0
    quick = _quartile([one[2] for one in spinning])
    spin = _threshold([one[0] for one in spinning], [one[0] for one in parked])
    woken = [one for one in parked if one[0] > spin] or parked
    wake = max(0.0, _quartile([one[2] for one in woken]) - quick)
    return spin, _quartile([one[1] for one in spinning]), _quartile([one[1] for one in woken]), wake


def _of_step(runs: Sequence[Run]) -> list[tuple[int, int, int]]:
    """List (how long the other thread was idle, until it started, what that cost here) where a pair ran at once."""
    by_name, found = {run.name: run for run in runs}, []
    for round_ in range(1, sum(name.startswith("small") for name in by_name)):
        join, before = by_name[f"join{round_ - 1}"], [by_name[f"{kind}{round_ - 1}"] for kind in ("small", "large")]
        first, second = sorted((by_name[f"{kind}{round_}"] for kind in ("small", "large")), key=lambda run: run.start)
        if second.start < first.end:
            idle = join.start - min(run.end for run in before)
            found.append((idle, second.start - join.end, first.start - join.end))
    return found


def _threshold(below: Sequence[int], above: Sequence[int]) -> float:
    """Return the length that parts two samples with the fewest on the wrong side, the smallest such length.

    >>> _threshold([1, 2, 3], [2, 5, 6])
    3
    """
    lengths = sorted({*below, *above})
    return min(lengths, key=lambda cut: (sum(one > cut for one in below) + sum(one <= cut for one in above), cut))
