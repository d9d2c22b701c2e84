"""Write suggestions as JSON-ready data, schema simplace/suggestion/1. Times are nanoseconds, gains shares of a time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from simplace.exports.schedule_report import report_comparison
from simplace.suggestions.changes import Change
from simplace.suggestions.edits import write_patch
from simplace.suggestions.estimated_step import Step
from simplace.suggestions.find_suggestions import Suggestions, WithoutXla
from simplace.suggestions.trial import Trial

SCHEMA = "simplace/suggestion/1"


def report_suggestions(found: Suggestions) -> dict[str, Any]:
    """Return everything as dictionaries, lists, strings and numbers."""
    program = found.before.schedule.placement.program
    return {
        "schema": SCHEMA,
        "target": found.evidence.script,
        "tensorflow": found.evidence.result.tensorflow,
        "program": program.name,
        "label": program.title,
        "costs": found.before.schedule.estimated.costs,
        "step": _report_step(found.before),
        "without_xla": None if found.without_xla is None else _report_without_xla(found.without_xla),
        "mirrored": None if found.mirrored is None else report_comparison(found.mirrored),
        "bound": found.bound,
        "found": found.found,
        "is_cut": found.is_cut,
        "suggestions": [
            {**_report_trial(trial), "patches": _report_patches(found, trial), "agrees": _agreement(trial)}
            for trial in found.best
        ],
        "tried": [_report_trial(trial) for trial in found.tried],
    }


def _report_without_xla(found: WithoutXla) -> dict[str, Any]:
    return {
        "alone": None if found.alone is None else _report_trial(found.alone),
        "estimated": found.estimated or None,
        "split": None if found.split is None else _report_trial(found.split),
    }


def _report_trial(trial: Trial) -> dict[str, Any]:
    return {
        "changes": [_report_change(part) for part in trial.change.list_parts()],
        "outcome": trial.outcome,
        "error": trial.error or None,
        "gain": round(trial.gain, 4),
        "gain_error": round(trial.gain_error, 4),
        "per": "example" if trial.is_per_example else "step",
        "changes_values": trial.change.changes_values,
        "step": None if trial.after is None else _report_step(trial.after),
    }


def _report_change(change: Change) -> dict[str, Any]:
    hidden = ("edits", "at", "pins")
    facts = {name: getattr(change, name) for name in change.__dataclass_fields__ if name not in hidden}
    return {"kind": change.kind, "line": change.at, **facts}


def _report_step(step: Step) -> dict[str, Any]:
    return {
        "time": step.nanoseconds,
        "time_error": round(step.uncertainty, 4),
        "examples": step.examples,
        "input": None if step.input is None else step.input.nanoseconds,
        "input_not_timed": None if step.untimed is None else asdict(step.untimed),
        "copied": step.copied,
        "woken": step.woken,
        "memory": [
            {"device": use.device, "needed": step.memory.needed(use), "limit": step.memory.limit(use) or None}
            for use in step.memory.uses
        ],
        "fits": step.memory.fits,
    }


def _report_patches(found: Suggestions, trial: Trial) -> list[dict[str, str]]:
    return [
        {"file": file.name, "patch": write_patch(file, trial.texts[file.name])} for file in found.changed_files(trial)
    ]


def _agreement(trial: Trial) -> dict[str, int] | None:
    if trial.result is None:
        return None
    asked = [placed.agreement for placed in trial.result.programs if placed.agreement is not None]
    return {"same": sum(one.same for one in asked), "total": sum(one.total for one in asked)}
