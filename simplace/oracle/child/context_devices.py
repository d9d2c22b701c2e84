"""The devices of TensorFlow's context, recorded before what is placed on them, and after each change."""

from __future__ import annotations

from typing import Any

from simplace.machine.machine import Machine
from simplace.oracle.child.devices import describe_context
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.tf_private import context


class ContextDevices:
    """Record each set of devices that a program has, one after another.

    A program gets others when it resets the context, joins a cluster, or leaves it. Events that follow are about what
    was placed on the devices that were recorded last.
    """

    def __init__(self, recorder: Recorder, machine: Machine) -> None:
        self._recorder = recorder
        self._machine = machine
        self._names: Any = ()  # TensorFlow's own list, which it never changes in place
        self._told: list[dict[str, Any]] = []
        self._changes = 0

    @property
    def told(self) -> list[dict[str, Any]]:
        """Return what was recorded last."""
        return self._told

    def tell(self) -> int:
        """Record the devices, unless they are those recorded last; return how often they changed before."""
        if context.context()._context_devices is self._names:
            return self._changes
        found = describe_context(self._machine)
        self._names = context.context()._context_devices
        if found != self._told:
            self._changes += bool(self._told)
            self._told = found
            self._recorder.event("devices", devices=found)
        return self._changes
