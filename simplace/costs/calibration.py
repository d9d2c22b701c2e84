"""Derive the executor's fixed times on this machine from the probes: small graphs that cost nothing else.

Nothing here looks at the graph that is measured. A step is a sum, so means are taken within a step, and the median over
steps; what takes many times the median is left out of a mean, for there a thread had lost its core. Hand-offs are taken
from all steps of a probe at once. What disturbs one makes it longer, but any step has its share of such ones: so the
mean counts here, too.

A machine is not always equally fast, so times are taken at one pace: of each probe the steps that ran at it count, and
where these are few, the nearest ones, as they would be at that pace; of hand-offs, which are few in a step, all steps,
as they would be. Fetching a node's data from memory takes equally long at every pace: bookkeeping that took 1.9 times
as long, since another machine computed on the same core, had 1.1 times the extra of a node's first run. Waking a parked
thread is the system's business, and the host's below a virtual machine, as much as that of the core: it takes the
square root of a pace as long.

What a node costs that is new in a step depends on how far away its data are. Those of few nodes are still in a near
cache from the step before, those of many, and of their trace, are not; and where a step has several threads, they may
be in that of another core. So it is taken from steps of several sizes, on one thread and on two.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate, islice, pairwise
from math import log, pi, sqrt
from statistics import fmean, median
from typing import NamedTuple, Protocol

import numpy as np

from simplace.costs.cost_model import Overheads

NEW_ON_ONE, NEW_ON_TWO = "new on one thread", "new on two threads"  # begin the names of probes of several sizes
PAIR = "pair"  # begins the names of expensive ops in these probes
LONG_NAMES = ", long names"  # ends the name of a probe that differs from another one in these alone
DEAD, FEW_DEAD, BRANCHES = 50, 2, 12  # nodes on each branch of the probes "dead" and "few dead", and branches
_SPUN = 8000  # nanoseconds: a thread that spins is faster than that, waking one is slower
_LOST = 10  # times the median: bookkeeping does not take that long
_ENOUGH = 50  # gaps of a kind in a step of the probe "shared": else its loops did not run at once
_NEAR, _FEW = 0.12, 6  # the logarithm of a quotient of paces; steps of a probe
_CHAINS = ("one", "other")  # of each round of the probes "beside"
_GROUPS, _IN_GROUP = 8, 30  # at most so many lengths of idleness, with at least so many hand-offs each


class Run(Protocol):
    """Record of when a node held its thread, in nanoseconds."""

    @property
    def name(self) -> str:
        """Return the node's name."""
        ...

    @property
    def start(self) -> float:
        """Return when the executor picked the node."""
        ...

    @property
    def end(self) -> float:
        """Return when its outputs were propagated."""
        ...


class LabelledRun(Run, Protocol):
    """Record of a run with what the trace writes of it."""

    @property
    def label(self) -> int:
        """Return how many bytes its label has, which the trace makes of its name and those of its inputs."""
        ...

    @property
    def names(self) -> int:
        """Count the long names in it: each is in memory of its own."""
        ...


class ProbeStep(Protocol):
    """Record of one step of a probe: its nodes by start."""

    @property
    def runs(self) -> Sequence[LabelledRun]:
        """Return when each node ran."""
        ...

    @property
    def pace(self) -> float:
        """Return how fast the machine was: nanoseconds of bookkeeping of a small node; 0 where that is unknown."""
        ...


class Sharing(NamedTuple):
    """Record of what a second busy thread costs.

    Everything takes `contention` times as long, since two cores may be the halves of one; between two nodes come `more`
    nanoseconds, since the memory that all threads write moves from core to core.
    """

    contention: float
    more: float


class _ScaledRun(NamedTuple):
    """Record of when a node would have held its thread at another pace."""

    name: str
    start: float
    end: float


class _SmallNodes(NamedTuple):
    """Record of means of a step of small ops in a loop, in nanoseconds and bytes, of nodes that have run in the step.

    `again` is the time until such a node, after one of the shorter half, which last `length`; the longer half of them
    lasts `of_long`, and `more` comes after these. The labels before them have `label` bytes.
    """

    again: float
    length: float
    of_long: float
    more: float
    label: float


class _NewNodes(NamedTuple):
    """Record of means of a step of new nodes, in nanoseconds.

    `first` is what comes to the time until a node that has run in the step, for one that has not, and `code` what comes
    to both if no other of its type has. The labels before them have `names` long names.
    """

    first: float
    code: float
    names: float


class _FirstRun(NamedTuple):
    """Record of what a node's first run in a step of `nodes` nodes costs, in nanoseconds, each long name apart."""

    nodes: float
    first: float
    code: float
    name: float


class _HandOff(NamedTuple):
    """Record of an op that one thread dispatched and another one started, in nanoseconds.

    The other thread was `idle` before and started `latency` later; the first one went on after `cost`.
    """

    idle: float
    latency: float
    cost: float


class _HandOffs(NamedTuple):
    """Record of what hand-offs take, in nanoseconds.

    A thread spins for `spin`, which varies by `spread` of it, and has found work `until` later. `parked` has the means
    of hand-offs to parked threads in groups, by idleness.
    """

    spin: float
    spread: float
    until: float
    parked: list[_HandOff]


Steps = Sequence[Sequence[Run]]


def derive_overheads(
    probes: Mapping[str, Sequence[ProbeStep]], pace: float = 0.0, nodes: int = 0, threads: int = 1
) -> Overheads:
    """Return the fixed times, in seconds, as a trace of `SOFTWARE_TRACE` shows them on a machine of a pace.

    They hold for steps of so many nodes on so many threads, 1 or -1 where one thread runs them all. `pace` is in
    nanoseconds, as that of the steps; 0 takes all times as they are.
    """
    beside = [step for name, steps in probes.items() if "beside" in name for step in steps]
    probes = {name: _choose_nearest(steps, pace) for name, steps in probes.items()}
    small, long = (_measure_small_nodes(probes[name], pace) for name in ("small", f"small{LONG_NAMES}"))
    a_byte = max(0.0, long.again - small.again) / (long.label - small.label)
    op = small.again - a_byte * small.label
    of_one, of_several = (_list_first_runs(probes, new, pace, op, a_byte) for new in (NEW_ON_ONE, NEW_ON_TWO))
    new = _interpolate(of_one if threads in (1, -1) else of_several, nodes)

    def scale(name: str) -> Steps:
        return [_scale_step(step, pace, _interpolate(of_one, len(step.runs)).first) for step in probes[name]]

    dead, to_dead = _measure_dead_nodes(*(_sum_gaps(scale(name)) for name in ("alive", "few dead", "dead")))
    dispatch, queue = _measure_dispatch(scale("wide"), _measure_gap(scale("after 64")))
    hand_offs = _measure_hand_offs([(step.runs, _find_factor(step, pace)) for step in beside])
    chains = [
        (_measure_product(steps), _measure_gap(steps) - small.again)
        for steps in (scale(name) for name in probes if "after" in name)
    ]
    of_small = [(small.length, 0.0), (small.of_long, small.more)]
    shared = [_scale_step(step, pace, 0.0) for step in probes["shared"]]
    sharing = [one for runs in shared if (one := measure_sharing(runs)) is not None]
    _, hand_off, wake = hand_offs.parked[0] if hand_offs.parked else (0.0, 0.0, 0.0)
    return Overheads(
        op_s=op / 1e9,
        first_s=new.first / 1e9,
        code_s=new.code / 1e9,
        label_s=a_byte / 1e9,
        name_s=new.name / 1e9,
        shared_s=median(one.more for one in sharing) / 1e9 if sharing else 0.0,
        contention=median(one.contention for one in sharing) if sharing else 1.0,
        hand_off_s=hand_off / 1e9,
        dead_s=dead / 1e9,
        to_dead_s=to_dead / 1e9,
        dispatch_s=dispatch / 1e9,
        wake_s=wake / 1e9,
        queue_s=queue / 1e9,
        spin_s=hand_offs.spin / 1e9,
        spin_spread=hand_offs.spread,
        spin_hand_off_s=hand_offs.until / 1e9,
        after_s=tuple((length / 1e9, more / 1e9) for length, more in _make_monotonic([*of_small, *chains])),
        parked_s=tuple((idle / 1e9, until / 1e9, cost / 1e9) for idle, until, cost in hand_offs.parked),
    )


def _choose_nearest(steps: Sequence[ProbeStep], pace: float) -> Sequence[ProbeStep]:
    """Return the steps near a pace, at least some of them; all where a pace is unknown."""
    if not pace or not all(step.pace for step in steps):
        return steps
    nearest = sorted(steps, key=lambda step: abs(log(step.pace / pace)))
    near = sum(abs(log(step.pace / pace)) <= _NEAR for step in nearest)
    return nearest[: max(near, _FEW)]


def _find_factor(step: ProbeStep, pace: float) -> float:
    return pace / step.pace if pace and step.pace else 1.0


def _scale_step(step: ProbeStep, pace: float, first: float) -> Sequence[Run]:
    """Return the runs of a step on one thread at another pace, without what each node's first run adds to a gap."""
    begin, factor = step.runs[0].start, _find_factor(step, pace)

    def scale(time: float, index: int) -> float:
        return (time - begin - index * first) * factor

    return [_ScaledRun(run.name, scale(run.start, i), scale(run.end, i)) for i, run in enumerate(step.runs)]


def _measure_gap(steps: Steps) -> float:
    """Return the mean time between two nodes on one thread."""
    return median(
        _average_without_outliers([after.start - before.end for before, after in pairwise(runs)]) for runs in steps
    )


def _measure_small_nodes(steps: Sequence[ProbeStep], pace: float) -> _SmallNodes:
    """Return the medians over steps."""
    found = [_small_of_step(step.runs, _find_factor(step, pace)) for step in steps]
    return _SmallNodes(*(median(values) for values in zip(*found, strict=True)))


def _small_of_step(runs: Sequence[LabelledRun], factor: float) -> _SmallNodes:
    """Return the means of a step; `factor` takes times to the wanted pace."""
    seen = {runs[0].name}
    again: list[tuple[float, float, int]] = []  # (how long the one before it ran, the time until a node, the label)
    for before, after in pairwise(runs):
        if after.name in seen:
            again.append((before.end - before.start, after.start - before.end, before.label))
        seen.add(after.name)
    again.sort()
    (lengths, gaps, labels), (long_lengths, long_gaps, _) = (
        zip(*half, strict=True) for half in (again[: len(again) // 2], again[len(again) // 2 :])
    )
    short = _average_without_outliers(gaps)
    return _SmallNodes(
        again=short * factor,
        length=median(lengths) * factor,
        of_long=median(long_lengths) * factor,
        more=(_average_without_outliers(long_gaps) - short) * factor,
        label=fmean(labels),
    )


def _list_first_runs(
    probes: Mapping[str, Sequence[ProbeStep]], kind: str, pace: float, op: float, a_byte: float
) -> list[_FirstRun]:
    """Return what a new node costs in steps of each size of a kind of probes, by size.

    `op` and a byte of a label are what comes before each node anyway, at the pace. Steps of one size with long names
    tell what a name costs in all.
    """

    def measure(steps: Sequence[ProbeStep]) -> _NewNodes:
        found = []
        for step in steps:
            factor = _find_factor(step, pace)
            found.append(_new_of_step(step.runs, op / factor, a_byte / factor))
        return _NewNodes(*(_average_middle_half(values) for values in zip(*found, strict=True)))

    found = {name: measure(steps) for name, steps in probes.items() if name.startswith(kind)}
    (long_name,) = (name for name in found if name.endswith(LONG_NAMES))
    long, short = found.pop(long_name), found[long_name.removesuffix(LONG_NAMES)]
    a_name = max(0.0, long.first - short.first) / (long.names - short.names)
    return sorted(
        _FirstRun(len(probes[name][0].runs), max(0.0, one.first - a_name * one.names), max(0.0, one.code), a_name)
        for name, one in found.items()
    )


def _new_of_step(runs: Sequence[LabelledRun], op: float, a_byte: float) -> _NewNodes:
    """Return the means of a step of new nodes; what they add does not depend on the pace, as `op` and a byte do.

    The times beside expensive ops do not count.
    """
    types = {_get_type(runs[0].name)}
    new_type: list[float] = []  # the time until a node
    new: list[tuple[float, int]] = []  # that, and the long names in the label before it
    for before, after in pairwise(runs):
        type_, more = _get_type(after.name), after.start - before.end - op - a_byte * before.label
        if PAIR not in (type_, _get_type(before.name)):
            if type_ in types:
                new.append((more, before.names))
            else:
                new_type.append(more)
        types.add(type_)
    first = _average_without_outliers([more for more, _ in new])
    return _NewNodes(first, _average_without_outliers(new_type) - first, fmean(names for _, names in new))


def _interpolate(table: Sequence[_FirstRun], nodes: int) -> _FirstRun:
    """Return what a new node costs in a step of so many nodes, of steps by size; beyond them, as in the last one.

    >>> _interpolate([_FirstRun(100, 50.0, 20.0, 10.0), _FirstRun(300, 150.0, 40.0, 30.0)], 150)
    _FirstRun(nodes=150.0, first=75.0, code=25.0, name=15.0)
    """
    sizes, *times = zip(*table, strict=True)
    return _FirstRun(float(nodes), *(float(np.interp(nodes, sizes, time)) for time in times))


def _get_type(name: str) -> str:
    """Return the op type of a new node of a probe, which is named after it.

    >>> _get_type("while/AddV2_3")
    'AddV2'
    """
    return name.rsplit("/", 1)[-1].split("_")[0]


def _make_monotonic(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Sort points by the first number, and make the second one non-negative and non-decreasing.

    >>> _make_monotonic([(3.0, 1.0), (1.0, -0.5), (2.0, 2.0)])
    [(1.0, 0.0), (2.0, 2.0), (3.0, 2.0)]
    """
    ordered = sorted(points)
    highest = accumulate((more for _, more in ordered), max, initial=0.0)
    return [(length, high) for (length, _), high in zip(ordered, islice(highest, 1, None), strict=True)]


def measure_sharing(runs: Sequence[Run]) -> Sharing | None:
    """Return what a second busy thread costs.

    `runs` is a step of the probe "shared": two loops, of which the longer one goes on alone. None where they did not
    run at once for a while, or the longer one did not go on.
    """
    loops = [[run for run in runs if f"{name}/" in run.name] for name in ("long", "short")]
    if not all(loops):
        return None
    begin, end = max(loop[0].start for loop in loops), min(loop[-1].end for loop in loops)
    lengths: dict[bool, list[float]] = {True: [], False: []}  # whether both run
    gaps: dict[bool, list[float]] = {True: [], False: []}
    for loop in loops:
        seen = {loop[0].name}
        for before, after in pairwise(loop):
            is_together = begin <= before.start and after.start <= end
            if after.name in seen and (is_together or before.start > end):
                gaps[is_together].append(after.start - before.end)
                if loop is loops[0]:
                    lengths[is_together].append(before.end - before.start)
            seen.add(after.name)
    if min(map(len, (*lengths.values(), *gaps.values()))) < _ENOUGH:
        return None
    contention = max(1.0, _average_without_outliers(lengths[True]) / _average_without_outliers(lengths[False]))
    more = _average_without_outliers(gaps[True]) - contention * _average_without_outliers(gaps[False])
    return Sharing(contention, max(0.0, more))


def _sum_gaps(steps: Steps) -> float:
    """Return the time between nodes, summed up over a step."""
    return median(sum(after.start - before.end for before, after in pairwise(runs)) for runs in steps)


def _measure_dead_nodes(alive: float, few: float, many: float) -> tuple[float, float]:
    """Return what a dead node takes, and what comes to the first of a row, of the times of three probes.

    >>> _measure_dead_nodes(0.0, 12 * (300.0 + 2 * 10.0), 12 * (300.0 + 50 * 10.0))
    (10.0, 300.0)
    """
    dead = max(0.0, many - few) / (BRANCHES * (DEAD - FEW_DEAD))
    return dead, max(0.0, (few - alive) / BRANCHES - FEW_DEAD * dead)


def _average_without_outliers(times: Sequence[float]) -> float:
    """Return the mean of what is not many times the median, whatever the sign.

    >>> _average_without_outliers([1, 2, 3, 500]), _average_without_outliers([-1, 1, -3])
    (2.0, -1.0)
    """
    most = _LOST * median(abs(time) for time in times)
    return fmean(time for time in times if abs(time) <= most)


def _average_middle_half(times: Sequence[float]) -> float:
    """Return the mean of the middle half: what few disturb, and what has two usual values counts both.

    >>> _average_middle_half([1, 2, 3, 500]), _average_middle_half([1, 1, 3, 3]), _average_middle_half([2])
    (2.5, 2.0, 2.0)
    """
    cut = len(times) // 4
    return fmean(sorted(times)[cut : len(times) - cut])


def _measure_product(steps: Steps) -> float:
    products = [run.end - run.start for runs in steps for run in runs if run.name.startswith("product")]
    return median(products)


def _measure_dispatch(steps: Steps, gap: float) -> tuple[float, float]:
    """Return the cost of each of three dispatched ops on their thread, and of taking one from the queue."""
    pairs = [(before, after) for runs in steps for before, after in pairwise(runs)]
    kept = [b.start - a.end for a, b in pairs if a.name.startswith("join") and b.name.startswith("wide")]
    taken = [b.start - a.end for a, b in pairs if a.name.startswith("wide") and b.name.startswith("wide")]
    return max(0.0, median(kept) - gap) / 3, max(0.0, median(taken) - gap)


def _measure_hand_offs(steps: Sequence[tuple[Sequence[Run], float]]) -> _HandOffs:
    """Return the means of hand-offs; `steps` of the probes "beside" have factors, which take times to a pace."""
    found = [(one, factor) for runs, factor in steps for one in _list_hand_offs(runs)]
    spinning = [_HandOff(*(time * factor for time in one)) for one, factor in found if one.latency < _SPUN]
    parked = [(one, factor) for one, factor in found if one.latency >= _SPUN]
    own = _average_without_outliers([one.cost for one in spinning]) if spinning else 0.0
    spin, spread = 0.0, 0.0
    if spinning and parked:
        below, above = [one.idle for one in spinning], [one.idle * factor for one, factor in parked]
        spin = _find_threshold(below, above)
        spread = _measure_spread(below, above, spin)
    woken = sorted(
        _HandOff(one.idle, one.latency * sqrt(factor), one.cost * sqrt(factor))
        for one, factor in [pair for pair in parked if pair[0].idle * pair[1] > spin] or parked
    )
    groups = max(1, min(_GROUPS, len(woken) // _IN_GROUP))
    table = []
    for i in range(groups if woken else 0):
        idle, latency, cost = zip(*woken[len(woken) * i // groups : len(woken) * (i + 1) // groups], strict=True)
        more = max(0.0, _average_without_outliers(cost) - own)
        table.append(_HandOff(median(idle), _average_without_outliers(latency), more))
    until = _average_without_outliers([one.latency for one in spinning]) if spinning else 0.0
    return _HandOffs(spin, spread, until, table)


def _list_hand_offs(runs: Sequence[Run]) -> list[_HandOff]:
    """List the hand-offs of a step, where the two chains of a round ran at once."""
    chains: dict[str, list[Run]] = {}
    for run in runs:
        chains.setdefault(run.name.partition("_")[0], []).append(run)
    found = []
    for round_ in range(1, sum(name.startswith("one") for name in chains)):
        (join,) = chains[f"join{round_ - 1}"]
        first, second = sorted((chains[f"{name}{round_}"] for name in _CHAINS), key=lambda chain: chain[0].start)
        if second[0].start < first[-1].end:
            idle = join.end - min(chains[f"{name}{round_ - 1}"][-1].end for name in _CHAINS)
            found.append(_HandOff(idle, second[0].start - join.end, first[0].start - join.end))
    return found


def _find_threshold(below: Sequence[float], above: Sequence[float]) -> float:
    """Return the length that separates two samples with the fewest errors, the smallest such length.

    >>> _find_threshold([1, 2, 3], [2, 5, 6])
    3
    """
    short, long = sorted(below), sorted(above)
    return min(
        sorted({*below, *above}), key=lambda cut: len(short) - bisect_right(short, cut) + bisect_right(long, cut)
    )


def _measure_spread(below: Sequence[float], above: Sequence[float], cut: float) -> float:
    """Return the standard deviation of a limit that is normally distributed around `cut`, as a share of it.

    `below` are lengths that did not reach the limit, `above` ones that went beyond. The share of lengths that are on
    the wrong side of `cut`, summed up over all lengths, is the mean deviation of the limit; only lengths from half of
    `cut` to twice as long count. Below, 7 is wrong, and stands for lengths from 6.5 to 7.5, a fifth of `cut`.

    >>> round(_measure_spread([3, 4, 5, 7], [6, 8, 9], 5.0), 2), _measure_spread([3, 4, 5], [6, 7, 8], 5.0)
    (0.25, 0.0)
    """
    near = sorted(
        (length, is_below) for lengths, is_below in ((below, True), (above, False)) for length in lengths
        if cut / 2 <= length <= 2 * cut
    )  # fmt: skip
    deviation = sum(
        (after[0] - before[0]) / 2
        for before, (length, is_below), after in zip(near, near[1:], near[2:], strict=False)
        if (length <= cut) != is_below
    )
    return deviation * sqrt(pi / 2) / cut if cut else 0.0
