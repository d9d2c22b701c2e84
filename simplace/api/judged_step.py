"""Simulate a step of a result's largest program, and say in one line why its devices are not busier."""

from __future__ import annotations

from simplace.errors import SimplaceError
from simplace.graph.op_kinds import NEXT_ITERATIONS
from simplace.result import Placed, Result

_CHEAP = 2000  # nodes: their step is simulated in less than 5 % of the time that it takes to run the program


def judge_step(result: Result, *, only_cheap: bool = False) -> str:
    """Return the verdict on a simulated step, "" where there is no step, or no device besides the CPU.

    With `only_cheap` programs with loops, and large ones, have none, nor what was read from a file: there is nothing
    slower to hide the simulation behind.
    """
    placed = _choose_program(result)
    if placed is None or (only_cheap and (result.unchecked or not _is_cheap(placed))):
        return ""
    from simplace.analysis.schedule import Schedule
    from simplace.executor.step_options import StepOptions
    from simplace.views.text.verdict import write_step_verdict

    try:
        return write_step_verdict(Schedule.of(placed.placement, StepOptions()))
    except SimplaceError as error:
        return f"no verdict on a step of {placed.name}: {error}"


def _choose_program(result: Result) -> Placed | None:
    """Return the largest program that runs, None where it is refused or has nothing to run."""
    if not result.programs:
        return None
    placed = result.largest()
    has_gpu = any(device.type != "CPU" for device in placed.placement.devices)
    runs = placed.placement.refusal is None and placed.placement.order and not placed.clusters
    return placed if has_gpu and runs else None


def _is_cheap(placed: Placed) -> bool:
    graph = placed.placement.graph
    return len(graph) <= _CHEAP and NEXT_ITERATIONS.isdisjoint(graph.ops)
