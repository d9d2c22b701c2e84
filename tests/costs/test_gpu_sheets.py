"""The data sheets, checked against each other: a peak is what lanes and clock make of it."""

import re
from pathlib import Path

import pytest

from simplace.costs.gpu_sheets import OLD_SHEETS, SHEETS, find_sheet
from simplace.costs.hardware import find_hardware
from simplace.errors import SimplaceError


@pytest.mark.parametrize("name", [*SHEETS, *OLD_SHEETS])
def test_float32_is_two_flops_a_lane_and_clock(name: str) -> None:
    sheet = find_sheet(name)
    assert sheet is not None
    assert 2 * sheet.sms * sheet.lanes * sheet.clock == pytest.approx(sheet.peak["float32"], rel=0.04)


@pytest.mark.parametrize(
    ("driver", "name"),
    [
        ("Tesla T4", "T4"), ("NVIDIA A100-SXM4-80GB", "A100"), ("NVIDIA A100 80GB PCIe", "A100 PCIe 80 GB"),
        ("NVIDIA H100 80GB HBM3", "H100"), ("NVIDIA H100 PCIe", "H100 PCIe"), ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"), ("Tesla V100-SXM2-16GB", "V100 SXM"), ("NVIDIA GB200", "GB200"),
        ("NVIDIA GeForce RTX 3060 Ti", "RTX 3060 Ti"), ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA H100 NVL", "H100 NVL"), ("h100_sxm", "H100"), ("A100-PCIe", "A100 PCIe 80 GB"),
        ("NVIDIA A10G", "A10G"), ("NVIDIA RTX A6000", "RTX A6000"), ("TITAN RTX", "TITAN RTX"),
        ("Quadro RTX 8000", "Quadro RTX 8000"), ("NVIDIA_H100_80GB_HBM3", "H100"), ("RTX 5090", "RTX 5090"),
    ],
)  # fmt: skip
def test_a_driver_s_name_finds_its_sheet(driver: str, name: str) -> None:
    assert find_hardware(driver).gpu.name == name


def test_the_page_of_costs_lists_every_short_name() -> None:
    page = Path(__file__).parents[2] / "docs" / "costs.md"
    table = page.read_text().partition("## GPUs in the library")[2]
    assert set(SHEETS) <= set(re.findall(r"[a-z][\w-]*\d[\w-]*|titanrtx", table))


def test_links_are_those_of_the_card() -> None:
    assert find_hardware("a100").peer_link.name == "NVLink 3"
    assert find_hardware("l4").peer_link.name == "PCIe 4.0 x16"
    assert find_hardware("b200").peer_link.bandwidth == 900e9


# TFLOPS as "NVIDIA Turing GPU Architecture", "NVIDIA Ampere GA102 ...", "NVIDIA Ada ..." and "NVIDIA RTX Blackwell GPU
# Architecture" print them: FP32, and FP16 on tensor cores that add up in FP32.
@pytest.mark.parametrize(
    ("name", "single", "half"),
    [
        ("rtx2080", 10.1, 40.3), ("rtx2070", 7.5, 29.9), ("titanrtx", 16.3, 130.5), ("rtx3080", 29.8, 59.5),
        ("rtx3070", 20.3, 40.6), ("rtxa6000", 38.7, 154.8), ("rtx4080", 48.7, 97.5), ("rtx6000ada", 91.1, 364.2),
        ("a10g", 35, 70), ("rtx5090", 104.8, 209.5), ("rtx5080", 56.3, 112.6),
    ],
)  # fmt: skip
def test_a_card_s_peaks_are_those_of_its_whitepaper(name: str, single: float, half: float) -> None:
    peak = SHEETS[name].peak
    assert (peak["float32"] / 1e12, peak["tensor_float16"] / 1e12) == pytest.approx((single, half), rel=0.01)


def test_an_unknown_gpu_names_those_that_are_close_or_where_all_are() -> None:
    with pytest.raises(SimplaceError, match=r"'rtx4095' is not a GPU .*: did you mean rtx4090, "):
        find_hardware("rtx4095")
    with pytest.raises(SimplaceError, match=r"'mi300x' is not a GPU .*: docs/costs.md lists all, such as a100"):
        find_hardware("mi300x")
