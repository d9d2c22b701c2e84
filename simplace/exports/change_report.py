"""Write what differs between two results as JSON-ready data, schema simplace/diff/1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simplace.analysis.step_times import StepTimes
from simplace.changes.placement_changes import Changes, Move, MoveCause, ProgramChanges
from simplace.exports.json_report import copy_report, reason_report
from simplace.result import Result

SCHEMA = "simplace/diff/1"


def report_changes(changes: Changes, times: Sequence[StepTimes] = ()) -> dict[str, Any]:
    """Return the whole comparison; `times` are the programs' simulated steps, () for none."""
    known: Sequence[StepTimes | None] = times or [None] * len(changes.programs)
    return {
        "schema": SCHEMA,
        "before": _report_side(changes.before),
        "after": _report_side(changes.after),
        "differs": changes.differs,
        "programs": [_report_program(change, one) for change, one in zip(changes.programs, known, strict=True)],
        "eager": {
            "compared": changes.eager.compared,
            "moves": [
                {"source": each.at, "op": each.op, "before": dict(each.before), "after": dict(each.after)}
                for each in changes.eager.moves
            ],
        },
        "only_before": [placed.name for placed in changes.only_before],
        "only_after": [placed.name for placed in changes.only_after],
    }


def _report_side(result: Result) -> dict[str, Any]:
    asked = [placed.agreement for placed in result.programs if placed.agreement is not None]
    return {
        "target": result.target,
        "tensorflow": result.tensorflow,
        "kernels": result.kernels,
        "devices": [device.name for device in result.devices],
        "checked": bool(asked) and len(asked) == len(result.programs),
        "agrees": result.agrees if asked else None,
        "unchecked": result.unchecked,
    }


def _report_program(change: ProgramChanges, times: StepTimes | None) -> dict[str, Any]:
    refused = change.refusals
    return {
        "name": change.name,
        "label": change.title,
        "compared": change.compared,
        "refused": {"before": refused[0] or None, "after": refused[1] or None},
        "moves": [_report_move(change, move) for move in change.moves],
        "causes": [_report_cause(cause) for cause in change.causes],
        "only_before": list(change.only_before),
        "only_after": list(change.only_after),
        "layers": [
            {"layer": one.layer, "source": one.at, "op": one.op, "loop": "after" if one.is_loop_after else "before"}
            for one in change.layers
        ],
        "copies_lost": [copy_report(change.before.placement, copy) for copy in change.copies_lost],
        "copies_gained": [copy_report(change.after.placement, copy) for copy in change.copies_gained],
        "step": None
        if times is None or times.without
        else {"before": times.before, "after": times.after, "errors": list(times.errors), "costs": times.costs},
    }


def _report_move(change: ProgramChanges, move: Move) -> dict[str, Any]:
    return {
        "name": move.name,
        "op": move.op,
        "from": move.source,
        "to": move.target,
        "root": move.root,
        "follows_by": move.how or None,
        "before": reason_report(change.before.placement, move.before),
        "after": reason_report(change.after.placement, move.after),
        "source": change.after.placement.notes(move.after).at,
    }


def _report_cause(cause: MoveCause) -> dict[str, Any]:
    return {
        "given": cause.given or None,
        "from": cause.roots[0].source,
        "to": cause.roots[0].target,
        "roots": [move.name for move in cause.roots],
        "by_colocation": [move.name for move in cause.colocated],
        "by_propagation": [move.name for move in cause.propagated],
    }
