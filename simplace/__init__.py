"""Replay, check, explain and draw how TensorFlow places a program on devices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simplace._version import __version__

if TYPE_CHECKING:
    from simplace.oracle.machine import Machine
    from simplace.result import Result

__all__ = ["__version__", "check", "place"]


def place(
    target: str,
    devices: str | None = None,
    soft_placement: bool | None = None,
    *,
    arguments: Sequence[str] = (),
    visible: str | None = None,
    max_calls: int = 10,
    timeout: float | None = 300.0,
    kernels: str = "",
) -> Result:
    """Place every program of a target and return the result, which explains, draws and exports itself.

    `target` is what `simplace show` takes: a script (`model.py`, `model.py:function`), a SavedModel directory, or a
    .pb, .pbtxt or .keras file. `devices` is a list such as "cpu:1,gpu:2" or a TOML file. `soft_placement` None keeps
    what the program sets. `timeout` is in seconds. Raises `simplace.errors.SimplaceError` for what the user can mend.
    """
    from simplace import targets

    machine, note = _machine(devices, visible)
    settings = targets.Settings(machine, soft_placement, tuple(arguments), max_calls, timeout, kernels)
    return targets.place(target, settings).with_devices_note(note)


def check(
    target: str,
    devices: str | None = None,
    soft_placement: bool | None = None,
    *,
    arguments: Sequence[str] = (),
    visible: str | None = None,
    max_calls: int = 10,
    timeout: float | None = 300.0,
    kernels: str = "",
) -> Result:
    """Do what `place` does, and let TensorFlow place files too; `result.agrees` says whether it does the same."""
    from simplace import targets

    machine, note = _machine(devices, visible)
    settings = targets.Settings(machine, soft_placement, tuple(arguments), max_calls, timeout, kernels)
    return targets.check(target, settings).with_devices_note(note)


def _machine(devices: str | None, visible: str | None) -> tuple[Machine, str]:
    from simplace.machine_file import machine

    return machine(devices, visible, os.environ)
