"""A library of GPUs: the figures that NVIDIA's data sheets and whitepapers give, and nothing measured.

Peaks are without sparsity; a GB is 10^9 bytes, as the sheets write it, but a GiB where it is the memory's size, which
is of chips with a power of two of bytes. Cards for data centers have ECC on, which takes a part of GDDR (`keep_ecc`),
those for workstations off. "lanes" are FP32 cores a streaming multiprocessor (SM). Links are bytes a second in one
direction, half of what the sheets print for both. SMs, caches and clocks that a data sheet leaves out are those of the
whitepaper of the same architecture.

- P4, P100, M40: "NVIDIA Tesla P4", "NVIDIA Tesla P100" and "Tesla M40" data sheets; "NVIDIA Tesla P100" whitepaper
  (WP-08019); TITAN X (Maxwell and Pascal), TITAN Xp, GeForce GTX 1080 Ti: product pages; "GeForce GTX 1080" whitepaper.
- V100: "NVIDIA V100 Tensor Core GPU" data sheet; "NVIDIA Tesla V100 GPU Architecture" whitepaper (WP-08608).
- T4: "NVIDIA T4 Tensor Core GPU" data sheet; RTX 2080 Ti: product page; both: "NVIDIA Turing GPU Architecture"
  whitepaper (WP-09183; FP64 is 1/32 of FP32, FP16 twice; tensor cores of GeForce add up in FP32 at half the rate).
- RTX 3090: "NVIDIA Ampere GA102 GPU Architecture" whitepaper (reference card). A10, A30, A40: their data sheets.
- A100: "NVIDIA A100 Tensor Core GPU" data sheet, 40 and 80 GB; "NVIDIA A100 Tensor Core GPU Architecture" whitepaper
  (FP16 78 and BF16 39 TFLOPS without tensor cores).
- RTX 4090: "NVIDIA Ada GPU Architecture" whitepaper. L4, L40, L40S: "NVIDIA L4 Tensor Core GPU", "NVIDIA L40", "NVIDIA
  L40S" data sheets.
- H100, H200: "NVIDIA H100 Tensor Core GPU" (SXM, PCIe, NVL), "NVIDIA H200 Tensor Core GPU" data sheets; "NVIDIA H100
  Tensor Core GPU Architecture" whitepaper (FP16 and BF16 133.8 TFLOPS without tensor cores, SXM).
- B200, GB200: "NVIDIA HGX Platform" and "NVIDIA GB200 NVL72" data sheets, divided by their number of GPUs; SMs, clock
  and L2 cache as the CUDA driver reports them of the cards (no data sheet has them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from simplace.costs.gpu_cards import CARDS
from simplace.costs.gpu_sheet import GB, GIB, MB, GpuSheet, keep_ecc, list_peaks

_P4 = GpuSheet("P4", 6.1, 20, 128, 1.113e9, 192 * GB, keep_ecc(8 * GIB), 2 * MB, 75, "16FF", "GDDR5",
               list_peaks(f64=5.5 / 32, f32=5.5))  # fmt: skip
_P100_PCIE = GpuSheet("P100 PCIe", 6.0, 56, 64, 1.303e9, 732 * GB, 16 * GIB, 4 * MB, 250, "16FF", "HBM2",
                      list_peaks(f64=4.7, f32=9.3, f16=18.7))  # fmt: skip
_P100_SXM = replace(_P100_PCIE, name="P100 SXM", clock=1.48e9, watts=300, nvlink=80 * GB, nvlink_generation=1,
                    peak=list_peaks(f64=5.3, f32=10.6, f16=21.2))  # fmt: skip
_V100_PCIE = GpuSheet("V100 PCIe", 7.0, 80, 64, 1.38e9, 900 * GB, 32 * GIB, 6 * MB, 250, "12FFN", "HBM2",
                      list_peaks(f64=7, f32=14, f16=28, tf16=112))  # fmt: skip
_V100_SXM = replace(_V100_PCIE, name="V100 SXM", clock=1.53e9, watts=300, nvlink=150 * GB, nvlink_generation=2,
                    peak=list_peaks(f64=7.8, f32=15.7, f16=31.4, tf16=125))  # fmt: skip
_T4 = GpuSheet("T4", 7.5, 40, 64, 1.59e9, 320 * GB, keep_ecc(16 * GIB), 4 * MB, 70, "12FFN", "GDDR6",
               list_peaks(f64=8.1 / 32, f32=8.1, f16=16.2, tf16=65))  # fmt: skip
_RTX_2080_TI = GpuSheet("RTX 2080 Ti", 7.5, 68, 64, 1.545e9, 616 * GB, 11 * GIB, 5632 << 10, 250, "12FFN", "GDDR6",
                        list_peaks(f64=13.4 / 32, f32=13.4, f16=26.9, tf16=53.8))  # fmt: skip
_RTX_3090 = GpuSheet("RTX 3090", 8.6, 82, 128, 1.695e9, 936 * GB, 24 * GIB, 6 * MB, 350, "8N", "GDDR6X",
                     list_peaks(f64=35.6 / 64, f32=35.6, f16=35.6, b16=35.6, tf32=35.6, tf16=71,
                     tb16=71), pcie=4)  # fmt: skip
_A10 = GpuSheet("A10", 8.6, 72, 128, 1.695e9, 600 * GB, keep_ecc(24 * GIB), 6 * MB, 150, "8N", "GDDR6",
                list_peaks(f64=31.2 / 64, f32=31.2, f16=31.2, b16=31.2, tf32=62.5, tf16=125,
                tb16=125), pcie=4)  # fmt: skip
_A40 = GpuSheet("A40", 8.6, 84, 128, 1.74e9, 696 * GB, keep_ecc(48 * GIB), 6 * MB, 300, "8N", "GDDR6",
                list_peaks(f64=37.4 / 64, f32=37.4, f16=37.4, b16=37.4, tf32=74.8, tf16=149.7, tb16=149.7),
                pcie=4, nvlink=56.25 * GB, nvlink_generation=3)  # fmt: skip
_A30 = GpuSheet("A30", 8.0, 56, 64, 1.44e9, 933 * GB, 24 * GIB, 24 * MB, 165, "N7", "HBM2",
                list_peaks(f64=5.2, f32=10.3, f16=41.3, b16=20.6, tf64=10.3, tf32=82, tf16=165, tb16=165),
                pcie=4, nvlink=100 * GB, nvlink_generation=3)  # fmt: skip
_A100_SXM_40 = GpuSheet("A100 SXM 40 GB", 8.0, 108, 64, 1.41e9, 1555 * GB, 40 * GIB, 40 * MB, 400, "N7", "HBM2",
                        list_peaks(f64=9.7, f32=19.5, f16=78, b16=39, tf64=19.5, tf32=156, tf16=312, tb16=312),
                        pcie=4, nvlink=300 * GB, nvlink_generation=3)  # fmt: skip
_A100_SXM_80 = replace(_A100_SXM_40, name="A100", bandwidth=2039 * GB, memory=80 * GIB, memory_kind="HBM2e")
_A100_PCIE_40 = replace(_A100_SXM_40, name="A100 PCIe 40 GB", watts=250)
_A100_PCIE_80 = replace(_A100_SXM_80, name="A100 PCIe 80 GB", bandwidth=1935 * GB, watts=300)
_RTX_4090 = GpuSheet("RTX 4090", 8.9, 128, 128, 2.52e9, 1008 * GB, 24 * GIB, 72 * MB, 450, "4N", "GDDR6X",
                     list_peaks(f64=82.6 / 64, f32=82.6, f16=82.6, b16=82.6, tf32=82.6, tf16=165.2, tb16=165.2),
                     pcie=4)  # fmt: skip
_L4 = GpuSheet("L4", 8.9, 58, 128, 2.04e9, 300 * GB, keep_ecc(24 * GIB), 48 * MB, 72, "4N", "GDDR6",
               list_peaks(f64=30.3 / 64, f32=30.3, f16=30.3, b16=30.3, tf32=60, tf16=121, tb16=121),
               pcie=4)  # fmt: skip
_L40S = GpuSheet("L40S", 8.9, 142, 128, 2.52e9, 864 * GB, keep_ecc(48 * GIB), 96 * MB, 350, "4N", "GDDR6",
                 list_peaks(f64=91.6 / 64, f32=91.6, f16=91.6, b16=91.6, tf32=183, tf16=362,
                 tb16=362), pcie=4)  # fmt: skip
_L40 = replace(_L40S, name="L40", clock=2.49e9, watts=300,
               peak=list_peaks(f64=90.5 / 64, f32=90.5, f16=90.5, b16=90.5, tf32=90.5, tf16=181,
               tb16=181))  # fmt: skip
_H100_PCIE = GpuSheet("H100 PCIe", 9.0, 114, 128, 1.755e9, 2000 * GB, 80 * GIB, 50 * MB, 350, "4N", "HBM2e",
                      list_peaks(f64=25.6, f32=51.2, f16=102.4, b16=102.4, tf64=51.2, tf32=378, tf16=756, tb16=756),
                      pcie=5, nvlink=300 * GB, nvlink_generation=4)  # fmt: skip
_H100_SXM = GpuSheet("H100", 9.0, 132, 128, 1.98e9, 3350 * GB, 80 * GIB, 50 * MB, 700, "4N", "HBM3",
                     list_peaks(f64=34, f32=67, f16=134, b16=134, tf64=67, tf32=494.5, tf16=989.5, tb16=989.5),
                     pcie=5, nvlink=450 * GB, nvlink_generation=4)  # fmt: skip
_H100_NVL = replace(_H100_SXM, name="H100 NVL", clock=1.785e9, bandwidth=3900 * GB, memory=94 * GIB, watts=400,
                    peak=list_peaks(f64=30, f32=60, f16=120, b16=120, tf64=60, tf32=417.5, tf16=835.5, tb16=835.5),
                    nvlink=300 * GB)  # fmt: skip
_H200 = replace(_H100_SXM, name="H200", bandwidth=4800 * GB, memory=141 * GIB, memory_kind="HBM3e")
_B200 = GpuSheet("B200", 10.0, 148, 128, 1.965e9, 7700 * GB, 180 * GIB, 126 * MB, 1000, "4NP", "HBM3e",
                 list_peaks(f64=37, f32=75, f16=150, b16=150, tf64=37, tf32=1125, tf16=2250, tb16=2250),
                 pcie=5, nvlink=900 * GB, nvlink_generation=5)  # fmt: skip
_GB200 = replace(_B200, name="GB200", sms=152, clock=2.062e9, bandwidth=8000 * GB, memory=186 * GIB, watts=1200,
                 peak=list_peaks(f64=40, f32=80, f16=160, b16=160, tf64=40, tf32=1250, tf16=2500,
                 tb16=2500))  # fmt: skip

# Named by what follows --gpu. A bare name is the card that is sold most for machines with several GPUs.
SHEETS: Mapping[str, GpuSheet] = {
    "p4": _P4, "p100": _P100_PCIE, "p100-sxm": _P100_SXM, "v100": _V100_SXM, "v100-pcie": _V100_PCIE, "t4": _T4,
    "rtx2080ti": _RTX_2080_TI, "rtx3090": _RTX_3090, "rtx4090": _RTX_4090, "a10": _A10, "a30": _A30, "a40": _A40,
    "a100": _A100_SXM_80, "a100-40gb": _A100_SXM_40, "a100-pcie": _A100_PCIE_80, "a100-pcie-40gb": _A100_PCIE_40,
    "l4": _L4, "l40": _L40, "l40s": _L40S, "h100": _H100_SXM, "h100-pcie": _H100_PCIE, "h100-nvl": _H100_NVL,
    "h200": _H200, "b200": _B200, "gb200": _GB200,
    **CARDS,
}  # fmt: skip

# Older cards that measurements in public repositories were made on, and that few would place a program on today.
OLD_SHEETS: Mapping[str, GpuSheet] = {
    "m40": GpuSheet("M40", 5.2, 24, 128, 1.114e9, 288 * GB, keep_ecc(12 * GIB), 3 * MB, 250, "28HP", "GDDR5",
                    list_peaks(f64=0.21, f32=7.0)),
    "titan-x": GpuSheet("TITAN X (Maxwell)", 5.2, 24, 128, 1.075e9, 336.5 * GB, 12 * GIB, 3 * MB, 250, "28HP", "GDDR5",
                        list_peaks(f64=0.21, f32=6.6)),
    "titan-x-pascal": GpuSheet("TITAN X (Pascal)", 6.1, 28, 128, 1.531e9, 480 * GB, 12 * GIB, 3 * MB, 250, "16FF",
                               "GDDR5X", list_peaks(f64=11 / 32, f32=11)),
    "titan-xp": GpuSheet("TITAN Xp", 6.1, 30, 128, 1.582e9, 547.7 * GB, 12 * GIB, 3 * MB, 250, "16FF", "GDDR5X",
                         list_peaks(f64=12.15 / 32, f32=12.15)),
    "gtx1080ti": GpuSheet("GTX 1080 Ti", 6.1, 28, 128, 1.582e9, 484 * GB, 11 * GIB, 2816 << 10, 250, "16FF", "GDDR5X",
                          list_peaks(f64=11.3 / 32, f32=11.3)),
}  # fmt: skip

_LEFT_OUT = ("nvidia", "geforce", "tesla", "generation")  # words of a driver's name that tell no GPUs apart


def _fold_name(name: str) -> str:
    words = name.lower().replace("_", " ").replace("-", " ").split()
    return "".join(word for word in words if word not in _LEFT_OUT)


# Short names, and what else a card is called: by NVIDIA's driver, and so by TensorFlow in a device's physical
# description, or after its form, where the short name alone is that form.
_NAMES: Mapping[str, str] = {_fold_name(short): short for short in (*SHEETS, *OLD_SHEETS)} | {
    _fold_name(theirs): ours
    for theirs, ours in {
        "P100-PCIE-16GB": "p100", "P100 PCIe": "p100", "P100-SXM2-16GB": "p100-sxm", "V100-PCIE-16GB": "v100-pcie",
        "V100-PCIE-32GB": "v100-pcie", "V100-SXM2-16GB": "v100", "V100-SXM2-32GB": "v100", "V100 SXM": "v100",
        "A100-SXM4-80GB": "a100", "A100 SXM": "a100", "A100 80GB": "a100", "A100-SXM4-40GB": "a100-40gb",
        "A100 80GB PCIe": "a100-pcie", "A100-PCIE-40GB": "a100-pcie-40gb", "H100 80GB HBM3": "h100",
        "H100 SXM": "h100", "H200 SXM": "h200", "B200 SXM": "b200", "GTX TITAN X": "titan-x",
        "TITAN X (Pascal)": "titan-x-pascal",
    }.items()
}  # fmt: skip


def find_sheet(name: str) -> GpuSheet | None:
    """Return the sheet of a GPU by its short name or by the driver's; None where there is none.

    A V100 of 16 GB differs from the sheet's in its memory alone.

    >>> find_sheet("NVIDIA A100-PCIE-40GB").name, find_sheet("Tesla V100-SXM2-16GB").memory, find_sheet("K80")
    ('A100 PCIe 40 GB', 17179869184, None)
    """
    folded = _fold_name(name)
    key = _NAMES.get(folded, "")
    found = SHEETS.get(key) or OLD_SHEETS.get(key)
    if found is not None and folded.startswith("v100") and folded.endswith("16gb"):
        return replace(found, memory=16 * GIB)
    return found
