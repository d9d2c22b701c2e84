"""Custom devices, such as DTensor's: they run ops and functions as functions of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simplace.oracle.child.function_calls import Call
from simplace.oracle.child.mesh_functions import MeshFunctions
from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.tensors import is_on_custom_device
from simplace.oracle.child.tf_private import context


class CustomDevices:
    """Find what runs on a custom device."""

    def __init__(self, functions: MeshFunctions) -> None:
        self._functions = functions
        self._has_any = False

    def watch(self) -> None:
        """Notice the devices that are registered from now on."""
        patch_method(context.Context, "register_custom_device", self._noticing)

    def takes(self, scope: str, inputs: Iterable[Any] = ()) -> bool:
        """Return whether TensorFlow runs an op on a custom device.

        Before one is registered TensorFlow need not be asked.
        """
        return self._has_any and is_on_custom_device(scope, inputs)

    def run(self, op: str, call: Call) -> Any:
        """Run an op or function that a custom device takes."""
        return self._functions.run(op, call)

    def _noticing(self, register: Any) -> Any:
        def noticing(*args: Any, **kwargs: Any) -> Any:
            self._has_any = True
            return register(*args, **kwargs)

        return noticing
