"""Custom devices, such as DTensor's: they run ops and functions in their own way, which TensorFlow does not place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simplace.oracle.child.patches import patch_method
from simplace.oracle.child.recorder import Recorder
from simplace.oracle.child.source_lines import SourceLines
from simplace.oracle.child.tf_private import context


class CustomDevices:
    """Find what runs on a custom device, and remark once that it is not placed."""

    def __init__(self, recorder: Recorder, lines: SourceLines) -> None:
        self._recorder = recorder
        self._lines = lines
        self._has_any = False
        self._told: set[str] = set()

    def watch(self) -> None:
        """Notice the devices that are registered from now on."""
        patch_method(context.Context, "register_custom_device", self._noticing)

    def takes(self, scope: str, inputs: Iterable[Any] = ()) -> bool:
        """Return whether TensorFlow runs an op on a custom device, and make a remark of it.

        So it does where a scope requests one or an input is on one (CustomDeviceOpHandler::Execute of
        eager/custom_device_op_handler.cc, TFE_Py_Execute).
        """
        if not self._has_any:
            return False
        is_custom = context.context().is_custom_device
        named = (scope, *(tensor.device for tensor in inputs))
        device = next((each for each in named if each and is_custom(each)), "")
        if device and device not in self._told:
            self._told.add(device)
            self._remark(device)
        return device != ""

    def _noticing(self, register: Any) -> Any:
        def noticing(*args: Any, **kwargs: Any) -> Any:
            self._has_any = True
            return register(*args, **kwargs)

        return noticing

    def _remark(self, device: str) -> None:
        at, short = self._lines.here(), device.rpartition("/device:")[2]
        named = f"{short} ({at})" if at else short
        self._recorder.remark(
            f"The custom device {named}, as DTensor has one, makes programs of its own of the ops and functions that "
            "it gets: those are neither placed nor compared, and on an emulated GPU, which computes nothing, they fail."
        )
