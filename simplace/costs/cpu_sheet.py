"""What a data sheet says of a CPU, and what follows for one of its cores. A GB is 10^9 bytes, as the sheets write it.

One core never draws the bandwidth of a socket: it waits for the few cache lines that it may have under way at once. A
core of a desktop's CPU read and wrote 25 MB each in 2.2 ms, so 22.7 GB/s, one of a server's of the same year took
4.5 ms: 11.1 GB/s (Stack Overflow, question 39260020: Skylake with two channels of DDR4-2133, Broadwell-E with four; the
answer counts the line fill buffers). So `DESKTOP_CORE`; for a core of a server what stands in `hardware` for a cloud
machine's, which is near the latter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

GB = 10**9
SERVER_CORE = 10 * GB
DESKTOP_CORE = 22.7 * GB
_WIDEST = 512  # bits; with vectors of that width CPUs clock lower


@dataclass(frozen=True, slots=True)
class CpuSheet:
    """Record of a CPU, which is one socket, as its data sheet describes it.

    `clock` is the base clock in Hz, `turbo` that of all cores at once (0: no sheet says), `bits` the width of a vector
    unit, `fma` how many of them multiply and add each cycle. Memory has `channels` of 8 bytes at `rate` transfers a
    second. `core_bandwidth` is what one core draws of it in bytes/s. `products` maps a data type to FLOP a cycle of one
    core in products of matrices, where the instruction set has more for these.
    """

    name: str
    cores: int
    clock: float
    turbo: float
    bits: int
    fma: int
    channels: int
    rate: float
    core_bandwidth: float = SERVER_CORE
    products: Mapping[str, float] = field(default_factory=dict)

    @property
    def bandwidth(self) -> float:
        """Return the bandwidth of the socket in bytes/s.

        >>> CpuSheet("8 channels of DDR4-3200", 1, 1e9, 0, 128, 1, 8, 3.2e9).bandwidth / 1e9
        204.8
        """
        return self.channels * 8 * self.rate

    @property
    def vector_clock(self) -> float:
        """Return the clock that cores keep in arithmetic on vectors: with 512 bits, it is nearer to the base clock.

        A Xeon Gold 6148 has a base clock of 2.4 GHz, and with all 20 cores at work a turbo of 3.1 GHz, of 2.2 GHz with
        AVX-512 (Intel Xeon Processor Scalable Family Specification Update, 336065).
        """
        return self.clock if self.bits >= _WIDEST or not self.turbo else self.turbo

    @property
    def peak(self) -> Mapping[str, float]:
        """Return FLOP/s of one core by data type, those of products with "tensor_" before it."""
        single = list_core_peaks(self.vector_clock, self.bits, self.fma)
        return {**single, **{f"tensor_{name}": self.vector_clock * flop for name, flop in self.products.items()}}


def list_core_peaks(clock: float, bits: int, fma: int) -> dict[str, float]:
    """Return FLOP/s of one core: a multiplication and an addition for each element of each unit's vector, each cycle.

    >>> list_core_peaks(1e9, 256, 2)
    {'float32': 32000000000.0, 'float64': 16000000000.0}
    """
    return {name: clock * 2 * fma * bits / width for name, width in (("float32", 32), ("float64", 64))}
