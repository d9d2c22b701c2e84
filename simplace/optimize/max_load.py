"""The largest load of a device, which limits how many samples a pipeline takes per unit of time."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.optimize.problem import CPU, PlacementProblem


def compute_max_load(problem: PlacementProblem, device_of: Sequence[int]) -> float:
    """Return the largest load.

    An accelerator has the time of its nodes and the cost of each output that it sends or receives, once each; the CPU
    has the time of its nodes. (Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators",
    NeurIPS 2020.)
    """
    return max(compute_loads(problem, device_of))


def compute_loads(problem: PlacementProblem, device_of: Sequence[int]) -> list[float]:
    """Return the load of each device."""
    loads = [0.0] * len(problem.devices)
    for node, device in enumerate(device_of):
        loads[device] += problem.time_on(node, device)
    for output in problem.outputs:
        home = device_of[output.producer]
        away = {device_of[reader] for reader in output.readers} - {home}
        for device in away | {home} if away else ():
            loads[device] += output.cost if device != CPU else 0
    return loads
