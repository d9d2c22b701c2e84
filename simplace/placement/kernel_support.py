"""Which device types each node of a graph has a kernel for, looked up once per distinct signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import DeviceSet
from simplace.graph.dtypes import DataType
from simplace.kernels.kernel_lookup import supported_device_types
from simplace.kernels.registry import Kernel, KernelTable

Types = tuple[tuple[str, int], ...]  # (device type, kernel priority), best first


class KernelSupport:
    """Answer "which device types, at which priority" for one table and one device set.

    Mirrors SupportedDeviceTypesForNode (tensorflow/core/framework/op_kernel.cc).
    """

    def __init__(self, table: KernelTable, devices: DeviceSet, local: DeviceName | None) -> None:
        self.table = table
        self.device_types = devices.types
        self._every_type: Types = tuple((kind, 0) for kind in devices.types)
        self._local = local
        self._constrained: dict[str, tuple[str, ...] | None] = {}
        self._known: dict[tuple[Any, ...], Types] = {}
        self._shared: dict[tuple[str, int, str], Types] = {}
        self._alive: list[Mapping[str, Any]] = []  # what `_shared` knows by id, so that no other can come to have it

    def types(self, op: str, attrs: Mapping[str, Any], requested: str) -> Types:
        """Return the device types that can run the op, empty if none can."""
        key = (op, id(attrs), requested)
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = self._look_up(op, attrs, requested)
            self._alive.append(attrs)
        return found

    def registered(self, op: str) -> str:
        """List the op's registrations a line each, as TensorFlow's messages do (KernelsRegisteredForOp)."""
        lines = [registration_text(kernel) for kernel in self.table.kernels(op)]
        return "".join(lines) or "  <no registered kernels>\n"

    def _look_up(self, op: str, attrs: Mapping[str, Any], requested: str) -> Types:
        if op not in self._constrained:
            self._constrained[op] = self._constrained_attrs(op)
        names = self._constrained[op]
        if names is None:
            return self._every_type  # a library function: it may run anywhere
        remote = self._remote(requested)
        key = (op, remote, *[attrs.get(name) for name in names])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = supported_device_types(
                self.table,
                op,
                attrs,
                self.device_types,
                requested=remote,
                local=self._local,
            )
        return found

    def _constrained_attrs(self, op: str) -> tuple[str, ...] | None:
        if self.table.op(op) is None:
            return None
        names = {attr for kernel in self.table.kernels(op) for attr, _ in kernel.constraints}
        return ("_kernel", *sorted(names))

    def _remote(self, requested: str) -> DeviceName | None:
        if self._local is None or not requested:
            return None
        spec = DeviceName.parse(requested)
        return spec if spec is not None and spec.different_address_space(self._local) else None


def registration_text(kernel: Kernel) -> str:
    """Describe one kernel registration as TensorFlow's messages do."""
    text = f"  device='{kernel.device_type}'"
    if kernel.label:
        text += f"; label='{kernel.label}'"
    for attr, allowed in kernel.constraints:
        names = ", ".join(_allowed_text(value) for value in sorted(allowed))
        text += f"; {attr} in [{names}]"
    return text + "\n"


def _allowed_text(value: Any) -> str:
    if isinstance(value, DataType):
        return value.name
    return value.decode() if isinstance(value, bytes) else str(value)
