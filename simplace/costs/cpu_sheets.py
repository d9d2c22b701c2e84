"""A library of CPUs: the figures that data sheets, optimization manuals and clouds give.

Cores are those of one socket, without the second thread that x86 cores run: what a cloud calls a vCPU is one of these
two. Channels and rates are those of the platform.

- Xeon 6148, 6230, 8358, 8480+: Intel ARK (cores, base clock, memory, FMA units); turbo of all cores: the Specification
  Updates of the families. Two 512-bit FMA units each (ARK, "# of AVX-512 FMA Units").
- Xeon 8175M, 8259CL, 8375C are made for clouds: base clock as the CPU prints it, cores and turbo of all cores as Amazon
  writes of the instances M5 (48 cores in two sockets, 3.1 GHz) and M6i (64, 3.5 GHz); memory and units are those of
  their generation (six channels of DDR4-2666 or DDR4-2933, eight of DDR4-3200).
- 8480+ has tiles (AMX): 1,024 operations a cycle of bfloat16, 2,048 of int8, a multiplication and an addition counted
  as two (Intel, "Accelerate Artificial Intelligence Workloads with Intel Advanced Matrix Extensions").
- EPYC 7742, 7763, 9654: AMD's product pages. Zen 2 and 3 have two FMA units of 256 bits (AMD, Software Optimization
  Guides for family 17h models 30h and 19h). Zen 4 takes vectors of 512 bits in two halves, and multiplies pairs of
  bfloat16 at the same rate (AVX512_BF16), so twice the operations (Guide for family 19h models 10h).
- EPYC 7R32, 7R13: as the CPU prints it and Amazon writes of the instances C5a (48 cores, 3.3 GHz) and M6a (96 in two
  sockets, 3.6 GHz).
- Graviton2, Graviton3: 64 cores each (Amazon; the AWS Graviton Technical Guide); Neoverse N1 has two units of 128 bits,
  V1 two of 256 bits (Arm's Software Optimization Guides); eight channels of DDR4-3200 and of DDR5-4800.
- Core i7-9700K, Ryzen 9 5950X and 7950X: ARK and AMD's product pages; turbo of the first from its Specification Update.
- Apple M1: its four fast cores alone, 3.2 GHz with all four at work, four units of 128 bits, and 58 GB/s that one core
  reads (AnandTech, "Apple Announces The Apple Silicon M1" and "The 2020 Mac Mini Unleashed"); LPDDR4X-4266, 128 bits.

Left out for lack of a sheet: Xeon 8488C, EPYC 9R14 and other parts of which only the cloud knows the clock. So are
CPUs whose cores differ (Core i9-13900K): a schedule has cores of one kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from simplace.costs.cpu_sheet import DESKTOP_CORE, GB, CpuSheet

_GHZ = 1e9
_AMX = {"bfloat16": 1024, "int8": 2048}
_ZEN_4 = {"bfloat16": 2 * (2 * 2 * 256 / 32)}  # twice float32's

# Named by what follows --cpu: GHz of base and turbo, bits and units, channels and 10^9 transfers a second.
SHEETS: Mapping[str, CpuSheet] = {
    "xeon-6148": CpuSheet("Xeon Gold 6148", 20, 2.4 * _GHZ, 3.1 * _GHZ, 512, 2, 6, 2.666e9),
    "xeon-8175m": CpuSheet("Xeon Platinum 8175M", 24, 2.5 * _GHZ, 3.1 * _GHZ, 512, 2, 6, 2.666e9),
    "xeon-6230": CpuSheet("Xeon Gold 6230", 20, 2.1 * _GHZ, 2.8 * _GHZ, 512, 2, 6, 2.933e9),
    "xeon-8259cl": CpuSheet("Xeon Platinum 8259CL", 24, 2.5 * _GHZ, 3.1 * _GHZ, 512, 2, 6, 2.933e9),
    "xeon-8358": CpuSheet("Xeon Platinum 8358", 32, 2.6 * _GHZ, 0, 512, 2, 8, 3.2e9),
    "xeon-8375c": CpuSheet("Xeon Platinum 8375C", 32, 2.9 * _GHZ, 3.5 * _GHZ, 512, 2, 8, 3.2e9),
    "xeon-8480": CpuSheet("Xeon Platinum 8480+", 56, 2.0 * _GHZ, 3.0 * _GHZ, 512, 2, 8, 4.8e9, products=_AMX),
    "epyc-7742": CpuSheet("EPYC 7742", 64, 2.25 * _GHZ, 0, 256, 2, 8, 3.2e9),
    "epyc-7r32": CpuSheet("EPYC 7R32", 48, 2.8 * _GHZ, 3.3 * _GHZ, 256, 2, 8, 3.2e9),
    "epyc-7763": CpuSheet("EPYC 7763", 64, 2.45 * _GHZ, 0, 256, 2, 8, 3.2e9),
    "epyc-7r13": CpuSheet("EPYC 7R13", 48, 2.65 * _GHZ, 3.6 * _GHZ, 256, 2, 8, 3.2e9),
    "epyc-9654": CpuSheet("EPYC 9654", 96, 2.4 * _GHZ, 3.55 * _GHZ, 256, 2, 12, 4.8e9, products=_ZEN_4),
    "graviton2": CpuSheet("Graviton2", 64, 2.5 * _GHZ, 0, 128, 2, 8, 3.2e9),
    "graviton3": CpuSheet("Graviton3", 64, 2.6 * _GHZ, 0, 256, 2, 8, 4.8e9),
    "i7-9700k": CpuSheet("Core i7-9700K", 8, 3.6 * _GHZ, 4.6 * _GHZ, 256, 2, 2, 2.666e9, DESKTOP_CORE),
    "ryzen-5950x": CpuSheet("Ryzen 9 5950X", 16, 3.4 * _GHZ, 0, 256, 2, 2, 3.2e9, DESKTOP_CORE),
    "ryzen-7950x": CpuSheet("Ryzen 9 7950X", 16, 4.5 * _GHZ, 0, 256, 2, 2, 5.2e9, DESKTOP_CORE, _ZEN_4),
    "m1": CpuSheet("Apple M1", 4, 3.2 * _GHZ, 3.2 * _GHZ, 128, 4, 2, 4.266e9, 58 * GB),
}

# What tells no CPUs apart in the name that the system prints: makers, grades, "64-Core", "13th Gen", "Ryzen 9".
_MARKS = re.compile(r"\((?:r|tm)\)|@.*")
_LEFT_OUT = re.compile(
    r"intel|amd|aws|apple|cpu|processor|platinum|gold|silver|bronze|core|gen|\d+-core|\d+(?:st|nd|rd|th)|\d"
)


def find_cpu_sheet(name: str) -> CpuSheet | None:
    """Return the sheet of a CPU by its short name, or by the model name that /proc/cpuinfo prints; None for others.

    >>> found = [find_cpu_sheet(name) for name in ("AMD EPYC 7763 64-Core Processor", "8375c", "Z80")]
    >>> [sheet and sheet.name for sheet in found]
    ['EPYC 7763', 'Xeon Platinum 8375C', None]
    """
    key = fold_cpu_name(name)
    if not key:
        return None
    return SHEETS.get(key) or next((sheet for short, sheet in SHEETS.items() if short.endswith(f"-{key}")), None)


def fold_cpu_name(name: str) -> str:
    """Return a name as short as those of the library.

    >>> fold_cpu_name("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz")
    'xeon-8375c'
    >>> fold_cpu_name("AMD Ryzen 9 5950X 16-Core Processor")
    'ryzen-5950x'
    """
    words = _MARKS.sub(" ", name.lower().replace("_", " ")).split()
    return "-".join(word.rstrip("+") for word in words if not _LEFT_OUT.fullmatch(word))
