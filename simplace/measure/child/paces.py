"""Tell how fast the machine was during each of some steps of a graph, by the times of their kernels.

The cores of a virtual machine may be halves of cores whose other halves belong to somebody else, and become slower by
half and faster again within milliseconds, each core for itself. A gauge before and after a step says little of what was
between; the kernels of the step itself, which are given to a simulation anyway, do. How fast that is in absolute terms
the gauges say, all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from statistics import fmean, median

_FAST = 10  # a node is as fast as it can be in one of so many steps at least


def find_paces(steps: Sequence[Mapping[str, float]], gauged: Sequence[float]) -> list[float]:
    """Return the pace of each step, in the unit of the gauge: the geometric means of both are the same.

    `steps` map nodes to the times of their kernels; `gauged` are the paces seen beside each step. What is compared is
    how many times as long a node took as in the fastest tenth of all steps, in the median over the nodes of all steps.

    >>> find_paces([{"a": 1.0, "b": 3.0}, {"a": 2.0, "b": 6.0}], [100.0, 400.0])
    [141.4213562373095, 282.842712474619]
    """
    names = [name for name in steps[0] if all(step.get(name, 0.0) > 0 for step in steps)] if steps else []
    if not names:
        return list(gauged)
    fast = {name: sorted(step[name] for step in steps)[len(steps) // _FAST] for name in names}
    slowdowns = [median(step[name] / fast[name] for name in names) for step in steps]
    unit = exp(fmean(map(log, gauged)) - fmean(map(log, slowdowns)))
    return [unit * slowdown for slowdown in slowdowns]
