"""Lower bounds of the value of any placement, by counting work."""

from __future__ import annotations

from math import inf

from simplace.graph.algorithm import order_by_inputs
from simplace.optimize.grouped import GroupedProblem
from simplace.optimize.problem import CPU


def bound_load(grouped: GroupedProblem) -> float:
    """Return a lower bound of the largest load: the best share of all work, and the largest group.

    The CPU takes the groups on which it is the least slow, as a whole or in part, and the accelerators share the rest
    equally, without transfers.
    """
    largest = max((min(times[device] for device in allowed) for times, allowed in _groups(grouped)), default=0.0)
    return max(largest, bound_shared_work(grouped, 1))


def bound_shared_work(grouped: GroupedProblem, cores: int) -> float:
    """Return the time in which all devices together can do all work, were it divisible; transfers take none."""
    devices = grouped.problem.accelerators
    cpu = accelerator = 0.0
    choices: list[tuple[float, float]] = []  # time on an accelerator, on the CPU
    for times, allowed in _groups(grouped):
        if CPU not in allowed:
            accelerator += times[-1]
        elif len(allowed) == 1:
            cpu += times[CPU]
        else:
            choices.append((times[allowed[-1]], times[CPU]))
    choices.sort(
        key=lambda pair: pair[1] / pair[0] if pair[0] else inf
    )  # what the CPU is the least slow at comes first
    accelerator += sum(fast for fast, _ in choices)
    for fast, slow in choices:
        # Part of this group goes to the CPU until both sides take equally long.
        if not devices or cpu / cores >= accelerator / devices:
            if devices:
                break
            cpu += slow
            continue
        if (cpu + slow) / cores <= (accelerator - fast) / devices:
            cpu, accelerator = cpu + slow, accelerator - fast
            continue
        part = (accelerator / devices - cpu / cores) / (slow / cores + fast / devices)
        return (accelerator - part * fast) / devices
    return max(cpu / cores, accelerator / devices if devices else 0.0)


def bound_path(grouped: GroupedProblem) -> float:
    """Return the longest path where each node takes the shortest of its times, and no transfer any."""
    problem = grouped.problem
    after: list[list[int]] = [[] for _ in range(len(problem))]
    waits = [0] * len(problem)
    for output in problem.outputs:
        after[output.producer].extend(output.readers)
        for reader in output.readers:
            waits[reader] += 1
    allowed = [()] * len(problem)  # type: list[tuple[int, ...]]
    for group, nodes in enumerate(grouped.members):
        for node in nodes:
            allowed[node] = grouped.allowed[group]
    end = [0.0] * len(problem)
    for node in order_by_inputs(waits, after.__getitem__):
        end[node] += min((problem.time_on(node, device) for device in allowed[node]), default=0.0)
        for reader in after[node]:
            end[reader] = max(end[reader], end[node])
    return max(end, default=0.0)


def _groups(grouped: GroupedProblem) -> list[tuple[tuple[float, ...], tuple[int, ...]]]:
    return list(zip(grouped.time, grouped.allowed, strict=True))
