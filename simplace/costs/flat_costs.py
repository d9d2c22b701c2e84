"""Price every kernel alike, every copy alike, everything else at nothing: for teaching and for tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from simplace.costs.cost_model import KernelCost, OpCall, Overheads
from simplace.costs.op_work import is_free


@dataclass(frozen=True, slots=True)
class FlatCosts:
    """Take `unit_s` for each kernel and for each copy of a tensor between memories."""

    unit_s: float = 1e-3
    name: str = "flat: 1 ms a kernel and a copy"
    overheads: Overheads = field(default_factory=Overheads)
    clock: float = 2.7e9

    def kernel(self, call: OpCall) -> KernelCost:
        """Price one execution: nothing for ops that compute nothing."""
        if is_free(call.op):
            return KernelCost(0.0)
        return KernelCost(0.0, self.unit_s) if call.device_type == "GPU" else KernelCost(self.unit_s)

    def copy(self, size: int, source: str, target: str) -> float:
        """Price a copy: nothing within host memory."""
        return 0.0 if source == target == "CPU" else self.unit_s

    def memory(self, device_type: str) -> int:
        """Limit nothing."""
        return 0
