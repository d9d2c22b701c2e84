"""The flat cost model: every kernel and every copy costs the same, all else nothing; for teaching and tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from simplace.costs.cost_model import CollectiveCall, Fixed, KernelCost, OpCall, Overheads, PeerWay, Reliability
from simplace.costs.op_work import is_free


@dataclass(frozen=True, slots=True)
class FlatCosts:
    """Cost model with `unit_s` for each kernel and for each copy of a tensor between memories."""

    unit_s: float = 1e-3
    name: str = "flat: 1 ms per kernel and per copy"
    overheads: Overheads = field(default_factory=Overheads)
    clock: float = 2.7e9

    def kernel(self, call: OpCall) -> KernelCost:
        """Estimate one execution: 0 for ops that compute nothing."""
        if is_free(call.op):
            return KernelCost(0.0)
        is_on_gpu = call.device_type == "GPU"
        return KernelCost(0.0, self.unit_s, error=0.0) if is_on_gpu else KernelCost(self.unit_s, error=0.0)

    def copy(self, size: int, source: str, target: str) -> float:
        """Estimate a copy: 0 within host memory."""
        return 0.0 if source == target == "CPU" else self.unit_s

    @property
    def peer_link(self) -> str:
        """Return "": there are none."""
        return ""

    @property
    def peer_way(self) -> PeerWay:
        """Return "pcie": a flat cost has no bandwidth that anything could share."""
        return "pcie"

    def assume_reliability(self, what: Fixed) -> Reliability:
        """Return an error of 0: a flat cost is no prediction."""
        return Reliability("guessed", 0.0)

    def collective(self, call: CollectiveCall) -> KernelCost:
        """Estimate a collective: as a copy."""
        return KernelCost(0.0, self.unit_s, error=0.0)

    def memory(self, device_type: str) -> int:
        """Return 0: memory is not limited."""
        return 0
