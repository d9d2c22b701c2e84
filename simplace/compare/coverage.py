"""How much of what TensorFlow logged during a run belongs to something that is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from simplace.graph.function_names import drop_specialization
from simplace.placement.placement import Placement
from simplace.placement.xla_compiler import find_clusters
from simplace.program.observation import LoggedGraph, WholeLog

_EAGER = "__wrapped__"  # how the function begins that TensorFlow makes of an eager op, to place and run it
_OWN = "simplace_"  # copies that compute what emulated GPUs do not; they are none of the program's
_PART = re.compile(r"_partitioned_\d+_\d+$")  # how the part of a function ends that another task is handed


@dataclass(frozen=True, slots=True)
class Coverage:
    """Record of how many lines of a log, one for each op placed or executed, belong to a program that is shown.

    `missing` lists those that belong to nothing. The lines of ops that were executed one by one are not counted, since
    some are of simplace's own; `eager` is how often the program itself ran such an op.
    """

    accounted: int
    total: int
    eager: int
    missing: tuple[str, ...] = ()


def measure_coverage(placements: Sequence[Placement], log: WholeLog, eager: int = 0) -> Coverage:
    """Count the lines of a log by what they belong to; `eager` ops ran outside of functions."""
    shown = _map_names(placements)
    accounted = 0
    missing: list[str] = []
    for graph in log.graphs:
        if not graph.function.startswith(_EAGER) and not _is_own(graph.function):
            unknown = _find_unknown_nodes(graph, shown)
            accounted += (len(graph.nodes) - len(unknown)) * graph.times
            missing += _list_missing(graph, unknown)
    for op, times in log.executed.items():
        whole = _PART.sub("", op)
        if whole in shown:
            accounted += times
        elif whole.startswith("__") and not whole.startswith(_EAGER):
            missing += [f"the call {op}"] * times
    return Coverage(accounted, accounted + len(missing), eager, tuple(missing))


def _is_own(function: str) -> bool:
    """Return whether simplace made a function, or tf.data made it of such functions."""
    return any(part.startswith(_OWN) for part in function.split("/"))


def _map_names(placements: Iterable[Placement]) -> Mapping[str, set[str]]:
    """Map each function that is shown to the names of its nodes, "" to those of all sessions."""
    found: dict[str, set[str]] = {}
    for placement in placements:
        program = placement.program
        functions = [program.function or ""]
        if program.kind == "compiled":
            functions = [cluster.function for cluster in find_clusters(placement)]
        for function in functions:
            found.setdefault(function, set()).update(placement.graph.names[node] for node in placement.decisions)
    return found


def _find_unknown_nodes(graph: LoggedGraph, shown: Mapping[str, set[str]]) -> list[str]:
    """List the nodes that no program has.

    A part that another task places anew, and a function that Grappler specializes for a call, have names of their own.
    """
    whole = drop_specialization(_PART.sub("", graph.function))
    if whole != graph.function and whole in shown:
        return []
    return [node.name for node in graph.nodes if node.name not in shown.get(graph.function, ())]


def _list_missing(graph: LoggedGraph, names: Sequence[str]) -> list[str]:
    return [f"{name} of {graph.function or 'a session'}" for name in names] * graph.times
