"""Simulate a step of a result's largest program, and find what its devices wait for."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from simplace.errors import SimplaceError
from simplace.explain.finding import Finding
from simplace.graph.op_kinds import NEXT_ITERATIONS
from simplace.program.answered_once import answer_once
from simplace.result import Placed, Result

if TYPE_CHECKING:
    from simplace.analysis.schedule import Schedule

# The step of so many nodes, and of so many runs of ops in loops, is simulated in less than 5 % of the time that it
# takes to run the program.
_CHEAP = 2000
_CHEAP_RUNS = 20_000


def simulate_largest(result: Result, *, only_cheap: bool = False) -> Schedule | None:
    """Return a step of the largest program, None where there is no step, or no device besides the CPU.

    With `only_cheap` large programs, and those with long loops, have none, nor what was read from a file: there is
    nothing slower to hide the simulation behind. Raises `SimplaceError` for a program that no step can be simulated of.
    """
    placed = _choose_program(result)
    if placed is None or (only_cheap and (result.unchecked or not _is_cheap(placed))):
        return None
    return _simulate_step(placed)


def is_left_out(result: Result) -> bool:
    """Return whether the largest program has a step that is not cheap to simulate."""
    placed = _choose_program(result)
    return placed is not None and not result.unchecked and not _is_cheap(placed)


def find_simulated(result: Result, *, only_cheap: bool = False) -> tuple[Finding, ...]:
    """Return the findings about a simulated step of the largest program, () where none can be simulated."""
    from simplace.analysis.step_findings import find_in_step

    try:
        schedule = simulate_largest(result, only_cheap=only_cheap)
    except SimplaceError:  # `judge_step` says why
        return ()
    return find_in_step(schedule) if schedule is not None else ()


@answer_once
def _simulate_step(placed: Placed) -> Schedule:
    from simplace.analysis.schedule import Schedule
    from simplace.executor.step_options import StepOptions

    return Schedule.of(placed.placement, StepOptions())


def _choose_program(result: Result) -> Placed | None:
    """Return the largest program that runs, None where it is refused or has nothing to run."""
    if not result.programs:
        return None
    placed = result.largest()
    has_gpu = any(device.type != "CPU" for device in placed.placement.devices)
    runs = placed.placement.refusal is None and placed.placement.order
    is_known = not any(cluster.has_control_flow for cluster in placed.clusters)
    return placed if has_gpu and runs and is_known else None


def _is_cheap(placed: Placed) -> bool:
    """Return whether a program is small, and its loops run few ops in all."""
    graph = placed.placement.graph
    if len(graph) > _CHEAP or NEXT_ITERATIONS.isdisjoint(graph.ops):
        return len(graph) <= _CHEAP
    from simplace.executor.control_flow import control_flow
    from simplace.partition.graph_partition import partition_graph

    trips = {loop.name: loop.trips for loop in control_flow(partition_graph(placed.placement.placed)).loops}
    outer = {name: [other for other in trips if name.startswith(f"{other}/")] for name in trips}
    rounds = (trips[name] * prod(trips[other] for other in outer[name]) for name in trips)
    return len(graph) * max(rounds, default=1) <= _CHEAP_RUNS
