"""Write the memory of a step as JSON-ready data, schema simplace/memory/1. Sizes are bytes, times whole nanoseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from simplace.analysis.memory import Held, MemoryUse
from simplace.analysis.memory_at_start import list_start_memory
from simplace.analysis.memory_kinds import (
    MemoryKind,
    Part,
    divide_kind,
    list_by_kind,
    list_by_line,
    list_by_scope,
    list_inside,
    name_kept,
)
from simplace.analysis.memory_remedies import Remedy
from simplace.analysis.schedule import Schedule
from simplace.analysis.step_memory import StepMemory
from simplace.executor.trace import ARGUMENTS

SCHEMA = "simplace/memory/1"
_HOLDERS = 50  # of the tensors at the peak, the largest


def report_memory(
    memory: StepMemory, is_state: Callable[[Held], bool], remedies: Sequence[Remedy] = ()
) -> dict[str, Any]:
    """Return everything, and what would help, as dictionaries, lists, strings and numbers.

    `is_state` tells of a variable whether it is an optimizer's or a metric's.
    """
    program = memory.schedule.placement.program
    return {
        "schema": SCHEMA,
        "program": program.name,
        "label": program.title,
        "costs": memory.schedule.estimated.costs,
        "time_error": round(memory.schedule.uncertainty, 4),
        "fits": memory.fits,
        "batch": memory.batch or None,
        "program_batch": memory.batches.batch or None,
        "largest_batch": memory.largest_batch,
        "reliable_batch": memory.reliable_batch,
        "devices": [_report_device(memory, use, is_state) for use in memory.uses],
        "at_start": [asdict(one) for one in list_start_memory(memory.schedule, grows=memory.grows)],
        "remedies": [_report_remedy(one) for one in remedies],
    }


def _report_device(memory: StepMemory, use: MemoryUse, is_state: Callable[[Held], bool]) -> dict[str, Any]:
    schedule, others = memory.schedule, memory.others[use.device]
    kinds = list_by_kind(schedule, use, is_state)
    if others.count:
        kinds.append((MemoryKind.OF_OTHERS, others))
        kinds.sort(key=lambda row: tuple(MemoryKind).index(row[0]))
    graph = schedule.estimated.graph
    return {
        "device": use.device,
        "tensors": memory.tensors(use),
        "needed": memory.needed(use),
        "limit": memory.limit(use) or None,
        "peak_at": use.peak_at,
        "runs_out": None
        if use.runs_out < 0
        else {
            "node": graph.nodes[use.runs_out].name,
            "line": graph.source_line(use.runs_out) or None,
            "time": use.runs_out_at,
            "largest_free": use.largest_free,
        },
        "lost": max(0, memory.needed(use) - memory.tensors(use)),
        "holders": [
            {
                **report_held(schedule, held),
                "kind": divide_kind(schedule, held, is_state).name.lower(),
                "line": graph.source_line(held.node) or None,
            }
            for held in use.holders[:_HOLDERS]
        ],
        "kinds": [{"kind": kind.name.lower(), **_report_part(schedule, part)} for kind, part in kinds],
        "scopes": [{"scope": name, **_report_part(schedule, part)} for name, part in list_by_scope(schedule, use)],
        "inside": [
            {"scope": name, "bytes": size, "tensors": count} for name, size, count in list_inside(schedule, use)
        ],
        "lines": [{"line": line or None, **_report_part(schedule, part)} for line, part in list_by_line(schedule, use)],
    }


def _report_remedy(remedy: Remedy) -> dict[str, Any]:
    return {
        "kind": remedy.kind,
        "device": remedy.device,
        "needed": remedy.needed,
        "fits": remedy.fits,
        "line": remedy.line or None,
        "amount": remedy.amount or None,
        "scope": remedy.subject or None,
        "target": remedy.target or None,
        "step": remedy.nanoseconds or None,
        "step_error": round(remedy.error, 4) if remedy.nanoseconds else None,
    }


def _report_part(schedule: Schedule, part: Part) -> dict[str, Any]:
    largest = None if part.largest is None else report_held(schedule, part.largest)
    return {"bytes": part.size, "tensors": part.count, "largest": largest}


def report_held(schedule: Schedule, held: Held) -> dict[str, Any]:
    """Return a tensor in memory by the name of its node, of an argument that has none by its own."""
    name = schedule.estimated.graph.nodes[held.node].name
    if held.slot <= ARGUMENTS:
        name = name_kept(schedule, held)
    return {"tensor": name if held.slot < 0 else f"{name}:{held.slot}", "bytes": held.size}
