"""A small library of real processors and links, each figure with its source.

Peaks are those of the data sheets, without sparsity. They are upper bounds: real kernels reach a part of them.

- T4: "NVIDIA T4 Tensor Core GPU" data sheet, specifications (8.1 TFLOPS FP32, 65 TFLOPS mixed FP16, 16 GB GDDR6,
  320 GB/s, PCIe 3.0 x16); "NVIDIA Turing GPU Architecture" whitepaper (FP64 is 1/32 of FP32, FP16 twice; boost clock
  1,590 MHz; compute capability 7.5).
- A100: "NVIDIA A100 Tensor Core GPU" data sheet, specifications, 80 GB SXM (9.7 FP64, 19.5 FP64 on tensor cores, 19.5
  FP32, 156 TF32, 312 BF16 and FP16 TFLOPS, 2,039 GB/s; the PCIe card 1,935 GB/s; NVLink 600 GB/s and PCIe Gen4 64 GB/s,
  both ways together); "NVIDIA A100 Tensor Core GPU Architecture" whitepaper, peak rates (FP16 78 and BF16 39 TFLOPS
  without tensor cores; boost clock 1,410 MHz).
- H100: "NVIDIA H100 Tensor Core GPU" data sheet, specifications, SXM (34 FP64, 67 FP64 on tensor cores, 67 FP32, 989
  TF32, 1,979 BF16 and FP16 TFLOPS, the last three with sparsity, so half of these without; 80 GB, 3.35 TB/s, NVLink 900
  GB/s, PCIe Gen5 128 GB/s); "NVIDIA H100 Tensor Core GPU Architecture" whitepaper (FP16 and BF16 133.8 TFLOPS without
  tensor cores; 1,980 MHz).
- H200: "NVIDIA H200 Tensor Core GPU" data sheet, specifications, SXM (the compute of the H100; 141 GB, 4.8 TB/s).
- A GB is 10^9 bytes, as the sheets write it. Drivers report a little more or less (ECC takes some of a T4's).
- CPU: AVX2 has two 8-wide fused multiply-adds a cycle, so 32 FLOP a cycle in float32 and 16 in float64 (Intel 64 and
  IA-32 Architectures Optimization Reference Manual, Haswell and later). Clock and bandwidth a core are those of a
  cloud machine of two cores: 2.7 GHz; 10 GB/s is what one core draws of a memory channel of DDR4-2666 (21.3 GB/s,
  JEDEC JESD79-4) together with its neighbour.

No data sheet lists the fixed times: a kernel launch costs the host a few microseconds, a copy 5 to 7 (measured in
arXiv:2602.21548, section 5.2). `launch_s`, `least_s` and `latency_s` are round figures of that size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from simplace.errors import SimplaceError, join_choices

GB = 10**9
TFLOPS = 1e12


@dataclass(frozen=True, slots=True)
class Processor:
    """Record of a processor: one core of a CPU, or a whole GPU.

    `peak` maps a data type's name to FLOP/s, with "tensor_" before it where matrix units do it. `bandwidth` is in
    bytes/s, `memory` in bytes (0: not limited), `clock` in Hz. `least_s` is the shortest time of any kernel,
    `launch_s` what a launch takes on the host. `capability` is a GPU's major compute capability.
    """

    name: str
    peak: Mapping[str, float]
    bandwidth: float
    memory: int
    clock: float
    least_s: float
    launch_s: float
    capability: int = 0

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
NVLINK_3 = Link("NVLink 3", 300 * GB, 6e-6)
NVLINK_4 = Link("NVLink 4", 450 * GB, 6e-6)
ETHERNET_10 = Link("10 Gb/s Ethernet", 1.25 * GB, 50e-6)  # IEEE 802.3ae; the latency is a round trip of gRPC's size

CPU_2_CORES = Processor(
    "CPU of 2 cores", {"float32": 2.7e9 * 32, "float64": 2.7e9 * 16}, 10 * GB, 0, 2.7e9, least_s=1e-6, launch_s=0.0
)
T4 = Processor(
    "T4",
    {"float32": 8.1 * TFLOPS, "float64": 8.1 / 32 * TFLOPS, "float16": 16.2 * TFLOPS, "tensor_float16": 65 * TFLOPS},
    320 * GB,
    16 * GB,
    1.59e9,
    least_s=2e-6,
    launch_s=5e-6,
    capability=7,
)
A100 = Processor(
    "A100",
    {
        "float32": 19.5 * TFLOPS, "float64": 9.7 * TFLOPS, "float16": 78 * TFLOPS, "bfloat16": 39 * TFLOPS,
        "tensor_float32": 156 * TFLOPS,  # TF32, which TensorFlow allows by default
        "tensor_float16": 312 * TFLOPS, "tensor_bfloat16": 312 * TFLOPS, "tensor_float64": 19.5 * TFLOPS,
    },
    2039 * GB,
    80 * GB,
    1.41e9,
    least_s=2e-6,
    launch_s=5e-6,
    capability=8,
)  # fmt: skip
H100 = Processor(
    "H100",
    {
        "float32": 67 * TFLOPS, "float64": 34 * TFLOPS, "float16": 134 * TFLOPS, "bfloat16": 134 * TFLOPS,
        "tensor_float32": 494.5 * TFLOPS, "tensor_float64": 67 * TFLOPS,
        "tensor_float16": 989.5 * TFLOPS, "tensor_bfloat16": 989.5 * TFLOPS,
    },
    3350 * GB,
    80 * GB,
    1.98e9,
    least_s=2e-6,
    launch_s=5e-6,
    capability=9,
)  # fmt: skip
H200 = replace(H100, name="H200", bandwidth=4800 * GB, memory=141 * GB)

MACHINES: Mapping[str, Hardware] = {
    "t4": Hardware(CPU_2_CORES, T4, PCIE_3, PCIE_3, ETHERNET_10),
    "a100": Hardware(CPU_2_CORES, A100, PCIE_4, NVLINK_3, ETHERNET_10),
    "a100-pcie": Hardware(CPU_2_CORES, replace(A100, bandwidth=1935 * GB), PCIE_4, PCIE_4, ETHERNET_10),
    "h100": Hardware(CPU_2_CORES, H100, PCIE_5, NVLINK_4, ETHERNET_10),
    "h200": Hardware(CPU_2_CORES, H200, PCIE_5, NVLINK_4, ETHERNET_10),
}


def find_hardware(name: str) -> Hardware:
    """Return the machine with GPUs of this name; raise `SimplaceError` with the known names otherwise.

    >>> find_hardware("H100").gpu.name
    'H100'
    """
    found = MACHINES.get(name.lower())
    if found is None:
        raise SimplaceError(
            f"{name!r} is not a GPU that simplace has performance data for; it has {join_choices(MACHINES)}"
        )
    return found
