"""Assert in a test where the nodes of a program are placed, on devices that need not be there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from simplace import targets
from simplace.importers import live_function
from simplace.machine_file import machine
from simplace.requirements import Requirement, Violation, parse, violations
from simplace.result import Result

_SHOWN = 20
_UNCHECKED = "a function of this process is not called"

__all__ = ["assert_placed"]


def assert_placed(
    target: Any,
    required: Mapping[str, str | Iterable[str]] | Iterable[str],
    devices: str | None = None,
    *,
    arguments: Sequence[Any] = (),
    keywords: Mapping[str, Any] | None = None,
    soft_placement: bool | None = None,
    timeout: float | None = 300.0,
    kernels: str = "",
) -> Result:
    """Fail with a message that says why, unless all nodes meet what is required of them; return the placement.

    `target` is a path (a script, a SavedModel, a graph file) or a live `tf.function` or concrete function; `arguments`
    and `keywords` are then what the function is traced for, and for a script the words of its command line. `required`
    maps globs over node names (or "op:" and a glob over op types) to a device, "!" and a device, or several devices of
    which any will do, such as {"MatMul*": "GPU:0"}; or it lists requirements as `simplace check --require` takes them.
    `devices` is a list such as "cpu:1,gpu:2" or a TOML file; see `simplace.place` for the rest. Raises
    `AssertionError` for nodes elsewhere, `SimplaceError` for a target or a requirement that cannot be read.
    """
    __tracebackhide__ = True  # pytest shows the test's own line
    requirements = _requirements(required)
    result = _placed(target, devices, tuple(arguments), keywords or {}, soft_placement, timeout, kernels)
    unmet = violations(result, requirements)
    if unmet:
        raise AssertionError(_message(result, requirements, unmet))
    return result


def _requirements(required: Mapping[str, str | Iterable[str]] | Iterable[str]) -> list[Requirement]:
    if not isinstance(required, Mapping):
        return [parse(text) for text in ([required] if isinstance(required, str) else required)]
    return [
        parse(f"{nodes}={devices if isinstance(devices, str) else '|'.join(devices)}")
        for nodes, devices in required.items()
    ]


def _placed(
    target: Any,
    devices: str | None,
    arguments: tuple[Any, ...],
    keywords: Mapping[str, Any],
    soft_placement: bool | None,
    timeout: float | None,
    kernels: str,
) -> Result:
    found, note = machine(devices, None, os.environ)
    settings = targets.Settings(found, soft_placement, time_limit=timeout, kernels=kernels)
    if isinstance(target, str | Path):
        words = tuple(str(word) for word in arguments)
        return targets.place(str(target), replace(settings, arguments=words)).with_devices_note(note)
    program = live_function.read(target, arguments, keywords)
    return targets.place_programs(program.name, [program], settings, _UNCHECKED).with_devices_note(note)


def _message(result: Result, requirements: Sequence[Requirement], unmet: Sequence[Violation]) -> str:
    count = len({violation.requirement for violation in unmet})
    lines = [f"{count} of {len(requirements)} requirements not met on {result.devices} ({result.devices_note}):"]
    lines += [f"  {_line(violation)}" for violation in unmet[:_SHOWN]]
    more = len(unmet) - _SHOWN
    return "\n".join([*lines, f"  and {more} more"] if more > 0 else lines)


def _line(found: Violation) -> str:
    if not found.node:
        return f"{found.requirement.text}: {found.because}"
    where = f"is on {found.device}" if found.device else "has no device"
    at = f" ({found.source})" if found.source else ""
    return f"{found.requirement.text}: {found.program}: {found.node} ({found.op}) {where}{at}. {found.because}"
