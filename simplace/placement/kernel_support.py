"""Which device types each node of a graph has a kernel for, and what is on the host, once per distinct signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simplace.devices.device_name import DeviceName
from simplace.devices.device_set import DeviceSet
from simplace.graph.dtypes import DataType
from simplace.graph.op_kinds import MUST_COMPILE
from simplace.kernels.kernel_lookup import HOST_HINTS, LABEL, memory_types, supported_device_types
from simplace.kernels.registry import Kernel, KernelTable, type_attrs

Types = tuple[tuple[str, int], ...]  # (device type, kernel priority), best first
OnHost = tuple[tuple[bool, ...], tuple[bool, ...]]  # of each input and each output, whether it is in host memory


class KernelSupport:
    """Answer "which device types, at which priority" and "what is in host memory" for one table and one device set.

    Mirrors SupportedDeviceTypesForNode and MemoryTypesForNode (tensorflow/core/framework/{op_kernel,memory_types}.cc).
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
        self._host_attrs: dict[str, tuple[str, ...]] = {}
        self._on_host: dict[tuple[Any, ...], OnHost] = {}

    def types(self, op: str, attrs: Mapping[str, Any], requested: str) -> Types:
        """Return the device types that can run the op, empty if none can."""
        key = (op, id(attrs), requested)
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = self._look_up(op, attrs, requested)
            self._alive.append(attrs)
        return found

    def host_memory(self, op: str, device_type: str, attrs: Mapping[str, Any]) -> OnHost | None:
        """Return which inputs and which outputs of an op are in host memory, None for an op that the table lacks."""
        names = self._host_attrs.get(op)
        if names is None:
            op_def, constrained = self.table.op(op), self._get_constrained(op)
            if op_def is None or constrained is None:
                return None
            names = self._host_attrs[op] = (*constrained, *type_attrs(op_def))
        if not attrs.keys().isdisjoint(HOST_HINTS):
            return memory_types(self.table, op, device_type, attrs)
        key = (op, device_type, attrs.get(MUST_COMPILE) is True, *[attrs.get(name) for name in names])
        found = self._on_host.get(key)
        if found is None:
            found = self._on_host[key] = memory_types(self.table, op, device_type, attrs)
        return found

    def registered(self, op: str) -> str:
        """List the op's registrations a line each, as TensorFlow's messages do (KernelsRegisteredForOp)."""
        lines = [registration_text(kernel) for kernel in self.table.kernels(op)]
        return "".join(lines) or "  <no registered kernels>\n"

    def _look_up(self, op: str, attrs: Mapping[str, Any], requested: str) -> Types:
        names = self._get_constrained(op)
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

    def _get_constrained(self, op: str) -> tuple[str, ...] | None:
        """Return the attributes that the choice of a kernel depends on, None for an op that the table lacks."""
        if op not in self._constrained:
            names = {attr for kernel in self.table.kernels(op) for attr, _ in kernel.constraints}
            self._constrained[op] = None if self.table.op(op) is None else (LABEL, *sorted(names))
        return self._constrained[op]

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
