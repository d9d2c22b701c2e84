"""What a data sheet says of a GPU. Peaks are without sparsity; a GB is 10^9 bytes, of the memory's size 2^30."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

GB = 10**9
MB = 1 << 20
GIB = 1 << 30
TFLOPS = 1e12


@dataclass(frozen=True, slots=True)
class GpuSheet:
    """Record of a GPU as its data sheet describes it.

    `capability` is the compute capability, `clock` the boost clock in Hz, `bandwidth` of its memory in bytes/s,
    `memory` and `l2` in bytes, the former without what ECC takes, `watts` the power limit of the board, `process` the
    foundry's name of the process, `memory_kind` of DRAM. `peak` maps a data type's name to FLOP/s, with "tensor_"
    before it where tensor cores do it. `pcie` is the generation of its 16 lanes (T4 and L4 have these too, or fewer),
    `nvlink` bytes/s in one direction and `nvlink_generation` their age; 0: it has none.
    """

    name: str
    capability: float
    sms: int
    lanes: int
    clock: float
    bandwidth: float
    memory: int
    l2: int
    watts: float
    process: str
    memory_kind: str
    peak: Mapping[str, float]
    pcie: int = 3
    nvlink: float = 0.0
    nvlink_generation: int = 0

    def flops(self, dtype: str, on_matrix_units: bool) -> float:
        """Return the peak for a data type; types that the GPU does not name run at its float32 rate.

        >>> from simplace.costs.gpu_sheets import SHEETS
        >>> SHEETS["t4"].flops("float16", True) / 1e12, SHEETS["t4"].flops("float32", True) / 1e12
        (65.0, 8.1)
        """
        if on_matrix_units and f"tensor_{dtype}" in self.peak:
            return self.peak[f"tensor_{dtype}"]
        return self.peak.get(dtype, self.peak["float32"])

    def has_matrix_units(self, dtype: str) -> bool:
        """Return whether tensor cores multiply this data type."""
        return f"tensor_{dtype}" in self.peak


ECC = 15 / 16  # of GDDR memory that keeps its ECC bits itself is left; HBM has chips for them


def keep_ecc(size: int) -> int:
    """Return the bytes that ECC leaves of GDDR memory.

    >>> keep_ecc(16 * GIB) / GIB
    15.0
    """
    return int(size * ECC)


def list_peaks(**teraflops: float) -> Mapping[str, float]:
    """Return peaks in FLOP/s from TFLOPS under short names: f64, f32, f16, b16, and t.. on tensor cores."""
    names = {"f64": "float64", "f32": "float32", "f16": "float16", "b16": "bfloat16"}
    return {
        ("tensor_" if name[0] == "t" else "") + names[name.removeprefix("t")]: value * TFLOPS
        for name, value in teraflops.items()
    }
