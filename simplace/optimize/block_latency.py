"""The latency of one sample where each accelerator takes its nodes as one block."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from simplace.graph.algorithm import order_by_inputs
from simplace.optimize.max_load import compute_loads
from simplace.optimize.problem import CPU, PlacementProblem


def compute_latency(problem: PlacementProblem, device_of: Sequence[int]) -> float:
    """Return when the last node ends, infinity if a path leaves an accelerator and comes back.

    An accelerator starts when all that it reads is done, and is busy for its load: transfers in, nodes, transfers out.
    A node on the CPU starts when its inputs are done, on a core of its own. (Tarnawski et al., NeurIPS 2020.)
    """
    nodes = len(problem)
    unit = [node if device == CPU else nodes + device for node, device in enumerate(device_of)]  # a block is one unit
    takes = [*problem.cpu_time, *compute_loads(problem, device_of)]
    after: list[set[int]] = [set() for _ in takes]
    for output in problem.outputs:
        after[unit[output.producer]].update(unit[reader] for reader in output.readers)
    for device in problem.devices:
        after[nodes + device].discard(nodes + device)
    waits = [0] * len(after)
    for one in (one for others in after for one in others):
        waits[one] += 1
    order = order_by_inputs(waits, lambda one: sorted(after[one]))
    if len(order) < len(after):
        return inf
    used = set(unit)
    done = [0.0] * len(after)
    for one in order:
        done[one] += takes[one] if one in used else 0.0
        for other in after[one]:
            done[other] = max(done[other], done[one])
    return max(done)
