"""Assert in a test where the nodes of a program are placed, on devices that need not be there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from simplace import api
from simplace.checks.requirements import Requirement, Violation, find_violations, parse_requirement
from simplace.importers import live_function
from simplace.result import Result

_SHOWN = 20
_UNCHECKED = "a function of this process is not called"

__all__ = ["assert_placed"]


class AssertKeywords(TypedDict, total=False):
    """Type the options of `assert_placed`."""

    soft_placement: bool | None
    timeout: float | None
    kernels: str


def assert_placed(
    target: Any,
    required: Mapping[str, str | Iterable[str]] | Iterable[str],
    devices: str | None = None,
    *,
    arguments: Sequence[Any] = (),
    keywords: Mapping[str, Any] | None = None,
    **options: Unpack[AssertKeywords],
) -> Result:
    """Raise `AssertionError`, with reasons, unless all nodes meet the requirements; return the placement.

    `target` is a path (a script, a SavedModel, a graph file) or a live `tf.function` or concrete function; `arguments`
    and `keywords` are then what the function is traced for, and for a script the words of its command line. `required`
    maps globs over node names (or "op:" and a glob over op types) to a device, "!" and a device, or several devices of
    which any will do, such as {"MatMul*": "GPU:0"}; or it lists requirements as `simplace check --require` takes them.
    `devices` is a list such as "cpu:1,gpu:2" or a TOML file; the options are `soft_placement`, `timeout` and
    `kernels`, as for `simplace.place`. Raises `AssertionError` for nodes elsewhere, `SimplaceError` for a target or a
    requirement that cannot be read.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    requirements = _parse_requirements(required)
    result = _place_target(target, arguments, keywords or {}, api.settings(devices, **options))
    unmet = find_violations(result, requirements)
    if unmet:
        raise AssertionError(_format_message(result, requirements, unmet))
    return result


def _parse_requirements(required: Mapping[str, str | Iterable[str]] | Iterable[str]) -> list[Requirement]:
    if not isinstance(required, Mapping):
        return [parse_requirement(text) for text in ([required] if isinstance(required, str) else required)]
    return [
        parse_requirement(f"{nodes}={devices if isinstance(devices, str) else '|'.join(devices)}")
        for nodes, devices in required.items()
    ]


def _place_target(target: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], settings: api.Settings) -> Result:
    if isinstance(target, str | Path):
        return api.place(str(target), replace(settings, arguments=[str(word) for word in arguments]))
    program = live_function.read_live_function(target, tuple(arguments), keywords)
    return api.place_program(program, settings, _UNCHECKED)


def _format_message(result: Result, requirements: Sequence[Requirement], unmet: Sequence[Violation]) -> str:
    count = len({violation.requirement for violation in unmet})
    lines = [f"{count} of {len(requirements)} requirements not met on {result.devices} ({result.devices_note}):"]
    lines += [f"  {_format_violation(violation)}" for violation in unmet[:_SHOWN]]
    more = len(unmet) - _SHOWN
    return "\n".join([*lines, f"  and {more} more"] if more > 0 else lines)


def _format_violation(found: Violation) -> str:
    if not found.node:
        return f"{found.requirement.text}: {found.because}"
    where = f"is on {found.device}" if found.device else "has no device"
    at = f" ({found.source})" if found.source else ""
    return f"{found.requirement.text}: {found.program}: {found.node} ({found.op}) {where}{at}. {found.because}"
