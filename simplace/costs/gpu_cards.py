"""Cards for desktops and workstations (GeForce, TITAN, RTX), and two of the cloud's that are made of their chips.

A row is what a card's data sheet, product page or the whitepaper of its architecture says: "NVIDIA Turing GPU
Architecture" (WP-09183), "NVIDIA Ampere GA102 GPU Architecture", "NVIDIA Ada GPU Architecture", "NVIDIA RTX Blackwell
GPU Architecture"; reference clocks. The rest follows from the architecture, as these whitepapers give it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simplace.costs.gpu_sheet import ECC, GB, GIB, TFLOPS, GpuSheet, list_peaks


@dataclass(frozen=True, slots=True)
class _Architecture:
    """Record of what all its cards have: `doubles` is the share of FP32's rate at which FP64 runs, `halves` FP16's."""

    capability: float
    lanes: int
    process: str
    pcie: int
    doubles: float
    halves: int
    has_bfloat16: bool


_TURING = _Architecture(7.5, 64, "12FFN", 3, 1 / 32, 2, has_bfloat16=False)
_AMPERE = _Architecture(8.6, 128, "8N", 4, 1 / 64, 1, has_bfloat16=True)
_ADA = _Architecture(8.9, 128, "4N", 4, 1 / 64, 1, has_bfloat16=True)
_BLACKWELL = _Architecture(12.0, 128, "4N", 5, 1 / 64, 1, has_bfloat16=True)

# Tensor cores of GeForce add up in FP32 at half the rate of those of TITAN RTX and of workstation cards.
_HALF_RATE, _FULL_RATE = 2, 4

# Name, SMs, boost clock in MHz, memory's bandwidth in GB/s and size in GiB, L2 in KiB, watts.
# ECC is on where a card is made for data centers.
_Row = tuple[str, int, int, float, float, int, int]


def _make_cards(architecture: _Architecture, rate: int, kind: str, *rows: _Row) -> dict[str, GpuSheet]:
    """Return the sheets of cards by short name; their tensor cores have `rate` times FP16's rate on lanes."""
    return {row[0].lower().replace(" ", ""): _make_card(architecture, rate, kind, row) for row in rows}


def _make_card(architecture: _Architecture, rate: int, kind: str, row: _Row) -> GpuSheet:
    name, sms, megahertz, bandwidth, memory, l2, watts = row
    single = 2 * sms * architecture.lanes * megahertz * 1e6 / TFLOPS
    half = single * architecture.halves
    peaks = {"f64": single * architecture.doubles, "f32": single, "f16": half, "tf16": half * rate}
    if architecture.has_bfloat16:
        peaks |= {"b16": half, "tf32": half * rate / 2, "tb16": half * rate}
    return GpuSheet(
        name, architecture.capability, sms, architecture.lanes, megahertz * 1e6, bandwidth * GB, int(memory * GIB),
        l2 << 10, watts, architecture.process, kind, list_peaks(**peaks), architecture.pcie,
    )  # fmt: skip


# By short name. NVLink bridges, which few of them have, are left out: two cards talk over PCIe.
CARDS: Mapping[str, GpuSheet] = {
    **_make_cards(
        _TURING, _HALF_RATE, "GDDR6",
        ("RTX 2060", 30, 1680, 336, 6, 3072, 160),
        ("RTX 2060 SUPER", 34, 1650, 448, 8, 4096, 175),
        ("RTX 2070", 36, 1620, 448, 8, 4096, 175),
        ("RTX 2070 SUPER", 40, 1770, 448, 8, 4096, 215),
        ("RTX 2080", 46, 1710, 448, 8, 4096, 215),
        ("RTX 2080 SUPER", 48, 1815, 496, 8, 4096, 250),
    ),
    **_make_cards(
        _TURING, _FULL_RATE, "GDDR6",
        ("TITAN RTX", 72, 1770, 672, 24, 6144, 280),
        ("Quadro RTX 6000", 72, 1770, 672, 24, 6144, 260),
        ("Quadro RTX 8000", 72, 1770, 672, 48, 6144, 260),
    ),
    **_make_cards(
        _AMPERE, _HALF_RATE, "GDDR6",
        ("RTX 3060", 28, 1777, 360, 12, 3072, 170),
        ("RTX 3060 Ti", 38, 1665, 448, 8, 4096, 200),
        ("RTX 3070", 46, 1725, 448, 8, 4096, 220),
        ("A10G", 80, 1710, 600, 24 * ECC, 6144, 300),
    ),
    **_make_cards(
        _AMPERE, _HALF_RATE, "GDDR6X",
        ("RTX 3070 Ti", 48, 1770, 608, 8, 4096, 290),
        ("RTX 3080", 68, 1710, 760, 10, 5120, 320),
        ("RTX 3080 Ti", 80, 1665, 912, 12, 6144, 350),
        ("RTX 3090 Ti", 84, 1860, 1008, 24, 6144, 450),
    ),
    **_make_cards(
        _AMPERE, _FULL_RATE, "GDDR6",
        ("RTX A4000", 48, 1560, 448, 16, 4096, 140),
        ("RTX A5000", 64, 1695, 768, 24, 6144, 230),
        ("RTX A6000", 84, 1800, 768, 48, 6144, 300),
        ("A2", 10, 1770, 200, 16 * ECC, 2048, 60),
    ),
    **_make_cards(
        _ADA, _HALF_RATE, "GDDR6",
        ("RTX 4060", 24, 2460, 272, 8, 24576, 115),
        ("RTX 4060 Ti", 34, 2535, 288, 8, 32768, 160),
    ),
    **_make_cards(
        _ADA, _HALF_RATE, "GDDR6X",
        ("RTX 4070", 46, 2475, 504, 12, 36864, 200),
        ("RTX 4070 SUPER", 56, 2475, 504, 12, 49152, 220),
        ("RTX 4070 Ti", 60, 2610, 504, 12, 49152, 285),
        ("RTX 4070 Ti SUPER", 66, 2610, 672, 16, 49152, 285),
        ("RTX 4080", 76, 2505, 716.8, 16, 65536, 320),
        ("RTX 4080 SUPER", 80, 2550, 736, 16, 65536, 320),
    ),
    **_make_cards(_ADA, _FULL_RATE, "GDDR6", ("RTX 6000 Ada", 142, 2505, 960, 48, 98304, 300)),
    **_make_cards(
        _BLACKWELL, _HALF_RATE, "GDDR7",
        ("RTX 5070", 48, 2512, 672, 12, 49152, 250),
        ("RTX 5070 Ti", 70, 2452, 896, 16, 49152, 300),
        ("RTX 5080", 84, 2617, 960, 16, 65536, 360),
        ("RTX 5090", 170, 2407, 1792, 32, 98304, 575),
    ),
}  # fmt: skip
