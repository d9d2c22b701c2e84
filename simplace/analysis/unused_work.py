"""Ops of a function whose results nothing uses: TensorFlow removes them before the function runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from simplace.analysis.schedule import Schedule
from simplace.costs.estimate import estimate_costs
from simplace.explain.findings import count_ops, locate_nodes
from simplace.explain.gradient_findings import find_gradients, get_gradient_scope
from simplace.explain.waiting_findings import UnusedWork
from simplace.graph.algorithm import reverse_reachable
from simplace.partition.dead_nodes import remove_dead_nodes
from simplace.partition.graph_partition import PartitionedGraph, partition_rewritten

_LEAST_S = 20e-6
_SHARE = 0.1  # of the step: what takes less would not be missed in a measurement


def find_unused_work(schedule: Schedule) -> Iterator[UnusedWork]:
    """Yield, for each device, the ops that nothing needs, where they would take a tenth of the step's time or more.

    A session runs a part of its graph as a matter of course, so there it is no finding. Neither is what no line of the
    program asks for: ops of a library, and what differentiation leaves over (the value of a loss of which only the
    gradients are used, and the gradients that a tape computes beside those that are used).
    """
    if schedule.run is not None or "unused" not in schedule.estimated.graph.left_out.values():
        return
    whole = partition_rewritten(schedule.estimated.graph.rewritten)
    kept = {node.name for node in remove_dead_nodes(whole).nodes}
    dead = [i for i, node in enumerate(whole.nodes) if node.role == "op" and node.origin >= 0 and node.name not in kept]
    own = _pick_own(schedule, whole, sorted(_drop_differentiated(whole, dead, kept))) if dead else []
    if not own:
        return
    kernels = estimate_costs(whole, schedule.estimated.model).kernels
    times: dict[str, dict[int, float]] = {}
    for i in own:
        if time := kernels[i].device_s or kernels[i].host_s:
            times.setdefault(whole.nodes[i].device, {})[i] = time
    for device, by_part in times.items():
        seconds = sum(by_part.values())
        if seconds >= max(_LEAST_S, _SHARE * schedule.makespan_s):
            yield _describe_unused(schedule, whole, device, by_part, seconds)


def _drop_differentiated(whole: PartitionedGraph, dead: Iterable[int], kept: Iterable[str]) -> set[int]:
    """Return the ops that are not connected to what a gradient that is used is computed of."""
    rest, used = set(dead), {get_gradient_scope(name) for name in kept} - {None, ""}
    left_over = {i for i in rest if not used.isdisjoint(_list_scopes(whole.nodes[i].name))}
    connected = reverse_reachable(left_over, lambda i: rest.intersection(_list_neighbours(whole, i)))
    return rest - connected


def _list_scopes(name: str) -> list[str]:
    """List what the gradients of a forward op, or a gradient op of the same, may have as scope: its name, and its own.

    >>> _list_scopes("dense/MatMul"), _list_scopes("gradient_tape/dense/MatMul/MatMul_1")
    (['dense/MatMul', 'dense'], ['dense/MatMul'])
    """
    scope = get_gradient_scope(name)
    return [name, name.rpartition("/")[0]] if scope is None else [scope]


def _list_neighbours(whole: PartitionedGraph, number: int) -> list[int]:
    return [*(edge.src for edge in whole.ins[number]), *(edge.dst for edge in whole.outs[number])]


def _pick_own(schedule: Schedule, whole: PartitionedGraph, dead: Sequence[int]) -> list[int]:
    """Return those of the dead nodes whose work a line of the program asks for."""
    placement, origin = schedule.placement, whole.rewritten.origin
    made_by = {i: origin[node.origin] for i, node in enumerate(whole.nodes) if node.role == "op" and node.origin >= 0}
    gradients, gone = find_gradients(placement), set(dead)
    passed_over = gradients if any(node in gradients and i not in gone for i, node in made_by.items()) else set()
    has_lines = bool(placement.program.notes)
    return [
        i
        for i in dead
        if (node := made_by[i]) >= 0 and node not in passed_over and not (has_lines and not placement.notes(node).at)
    ]


def _describe_unused(
    schedule: Schedule, whole: PartitionedGraph, device: str, times: dict[int, float], seconds: float
) -> UnusedWork:
    """Return the finding, at the line of the op that takes longest."""
    placement, origin = schedule.placement, whole.rewritten.origin
    dearest = sorted(times, key=lambda i: (-times[i], i))
    nodes = [node for i in dearest if (node := origin[whole.nodes[i].origin]) >= 0]
    at, program, names = locate_nodes(placement, nodes)
    short, share = placement.devices.by_name[device].short, seconds / (seconds + schedule.makespan_s)
    return UnusedWork(at, program, names, count_ops(placement, nodes), short, share)
