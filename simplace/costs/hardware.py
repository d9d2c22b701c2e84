"""A small library of real processors and links, each figure with its source.

Peaks are those of the data sheets, without sparsity. They are upper bounds: real kernels reach a part of them.

- GPUs: `gpu_sheets`, CPUs: `cpu_sheets`, each with its data sheet.
- A GB of bandwidth is 10^9 bytes, as the sheets write it; a GB of memory is 2^30 bytes, and a card that keeps ECC's
  codes in its memory has a sixteenth less (`gpu_sheet`).
- The CPU where none is named: AVX2 has two 8-wide fused multiply-adds a cycle, so 32 FLOP a cycle in float32 and 16 in
  float64 (Intel 64 and IA-32 Architectures Optimization Reference Manual, Haswell and later). Clock and bandwidth a
  core are those of a cloud machine of two cores: 2.7 GHz; 10 GB/s is what one core draws of a memory channel of
  DDR4-2666 (21.3 GB/s, JEDEC JESD79-4) together with its neighbour.

No data sheet lists the fixed times. An op that launches a kernel took the host of an H200 (16 virtual cores of a Xeon)
7.5 to 10 us in whole steps of `benchmarks/gpu_models.py`, the executor's part with it, and 3.4 us where one op follows
another of its type, so that all its code is in the caches: `launch_s`, `next_launch_s`. A copy costs 5 to 7 us
(arXiv:2602.21548, section 5.2); `least_s` and `latency_s` are round figures.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from simplace.costs.calibrated_cpu import Rates, read_rate
from simplace.costs.gpu_sheet import GpuSheet
from simplace.costs.gpu_sheets import SHEETS, find_sheet
from simplace.errors import SimplaceError, join_alternatives

GB = 10**9


@dataclass(frozen=True, slots=True)
class Processor:
    """Record of a processor: one core of a CPU, or a whole GPU.

    `peak` maps a data type's name to FLOP/s, with "tensor_" before it where matrix units do it. `bandwidth` is in
    bytes/s, `memory` in bytes (0: not limited), `clock` in Hz. `least_s` is the shortest time of any kernel,
    `launch_s` what an op that launches one takes on the host, `next_launch_s` one more launch of the same op.
    `capability` is a GPU's major compute capability, `sheet` its sheet.

    Of a CPU, `cores` is how many of them there are, and `whole_bandwidth` what memory gives all together (0: as much as
    they draw). Where it was measured, `reads` has (bytes that an op reads in all, bytes/s) and `writes` the same of
    what it makes: small tensors are in the caches, and the pages of large outputs are new. `products` has by data type
    (FLOPs of a product, FLOP/s). Each is sorted by its first numbers. `vector_flops` is what elementwise ops reach in
    float32.
    """

    name: str
    peak: Mapping[str, float]
    bandwidth: float
    memory: int
    clock: float
    least_s: float
    launch_s: float
    next_launch_s: float = 0.0
    capability: int = 0
    sheet: GpuSheet | None = None
    cores: int = 0
    whole_bandwidth: float = 0.0
    reads: Rates = ()
    writes: Rates = ()
    products: Mapping[str, Rates] = field(default_factory=dict)
    vector_flops: float = 0.0

    @property
    def is_calibrated(self) -> bool:
        """Return whether its figures were measured."""
        return bool(self.reads)

    def move_s(self, read: int, written: int) -> float:
        """Return how long it takes to read and write so many bytes.

        >>> CPU_2_CORES.move_s(6 * 10**9, 4 * 10**9)
        1.0
        """
        if not self.reads:
            return (read + written) / self.bandwidth
        return read / read_rate(self.reads, read) + written / read_rate(self.writes, written)

    def share_s(self, read: int, written: int) -> float:
        """Return how long it takes at least to read and write so many bytes, however many cores share them.

        They share the memory, and hardly their caches: what these hold does not count. Where rates were measured, it is
        the less, the nearer the time of one core is to what it would be at the rates of the largest tensors.

        >>> CPU_2_CORES.share_s(6 * 10**9, 4 * 10**9)
        0.0
        """
        if not self.whole_bandwidth:
            return 0.0
        return self._find_miss_share(read, written) * (read + written) / self.whole_bandwidth

    def _find_miss_share(self, read: int, written: int) -> float:
        """Return what part of the bytes that an op reads and writes no cache holds."""
        if not self.reads:
            return 1.0
        cached_s = read / max(rate for _, rate in self.reads) + written / max(rate for _, rate in self.writes)
        from_memory_s = read / self.reads[-1][1] + written / self.writes[-1][1]
        if from_memory_s <= cached_s:
            return 1.0
        return min(1.0, (self.move_s(read, written) - cached_s) / (from_memory_s - cached_s))

    def compute_s(self, flops: float, dtype: str, on_matrix_units: bool) -> float:
        """Return how long so much arithmetic takes; `on_matrix_units` is true of products.

        Products of types that were not measured run at float32's rates.

        >>> CPU_2_CORES.compute_s(86.4e9, "float32", True)
        1.0
        """
        if on_matrix_units and self.products:
            return flops / read_rate(self.products.get(dtype, self.products["float32"]), flops)
        peak = self.flops(dtype, on_matrix_units)
        if not self.vector_flops:
            return flops / peak
        return flops / (self.vector_flops * peak / self.flops("float32", on_matrix_units))

    def flops(self, dtype: str, on_matrix_units: bool) -> float:
        """Return the peak for a data type; types that the processor does not name run at its float32 rate."""
        if on_matrix_units and f"tensor_{dtype}" in self.peak:
            return self.peak[f"tensor_{dtype}"]
        return self.peak.get(dtype, self.peak["float32"])


@dataclass(frozen=True, slots=True)
class Link:
    """Record of a link between memories: bytes/s in one direction, seconds before the first byte."""

    name: str
    bandwidth: float
    latency_s: float

    def seconds(self, size: int) -> float:
        """Return how long `size` bytes take.

        >>> round(PCIE_3.seconds(10**9), 3)
        0.063
        """
        return self.latency_s + size / self.bandwidth


@dataclass(frozen=True, slots=True)
class Hardware:
    """Return a machine: `cpu` is one of its cores, `host_link` connects host and GPU, `peer_link` two GPUs."""

    cpu: Processor
    gpu: Processor
    host_link: Link
    peer_link: Link
    network: Link


PCIE_3 = Link("PCIe 3.0 x16", 15.75 * GB, 6e-6)  # PCI-SIG: 8 GT/s a lane, 128b/130b, 16 lanes
PCIE_4 = Link("PCIe 4.0 x16", 31.5 * GB, 6e-6)  # 16 GT/s a lane
PCIE_5 = Link("PCIe 5.0 x16", 63.0 * GB, 6e-6)  # 32 GT/s a lane
_PCIE = {3: PCIE_3, 4: PCIE_4, 5: PCIE_5}
ETHERNET_10 = Link("10 Gb/s Ethernet", 1.25 * GB, 50e-6)  # IEEE 802.3ae; the latency is a round trip of gRPC's size

CPU_2_CORES = Processor(
    "CPU of 2 cores", {"float32": 2.7e9 * 32, "float64": 2.7e9 * 16}, 10 * GB, 0, 2.7e9, least_s=1e-6, launch_s=0.0,
    cores=2,
)  # fmt: skip


def _make_gpu(sheet: GpuSheet) -> Processor:
    """Return a GPU as the roofline sees it."""
    return Processor(
        sheet.name, sheet.peak, sheet.bandwidth, sheet.memory, sheet.clock, least_s=2e-6, launch_s=8e-6,
        next_launch_s=3.4e-6, capability=int(sheet.capability), sheet=sheet,
    )  # fmt: skip


def _make_machine(sheet: GpuSheet) -> Hardware:
    host = _PCIE[sheet.pcie]
    peers = Link(f"NVLink {sheet.nvlink_generation}", sheet.nvlink, 6e-6) if sheet.nvlink else host
    return Hardware(CPU_2_CORES, _make_gpu(sheet), host, peers, ETHERNET_10)


MACHINES: Mapping[str, Hardware] = {name: _make_machine(sheet) for name, sheet in SHEETS.items()}


def find_hardware(name: str) -> Hardware:
    """Return the machine with GPUs of this name, ours or the driver's; raise `SimplaceError` with the known otherwise.

    >>> find_hardware("H100").gpu.name
    'H100'
    """
    found = MACHINES.get(name.lower())
    if found is None and (sheet := find_sheet(name)):
        return _make_machine(sheet)
    if found is None:
        close = difflib.get_close_matches(name.lower(), MACHINES, n=4)
        hint = f"did you mean {join_alternatives(close)}?" if close else "docs/costs.md lists all, such as a100, t4, l4"
        raise SimplaceError(f"{name!r} is not a GPU that simplace has performance data for: {hint}")
    return found
