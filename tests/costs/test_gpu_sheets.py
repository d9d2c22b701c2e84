"""The data sheets, checked against each other: a peak is what lanes and clock make of it."""

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
    ],
)  # fmt: skip
def test_a_driver_s_name_finds_its_sheet(driver: str, name: str) -> None:
    assert find_hardware(driver).gpu.name == name


def test_links_are_those_of_the_card() -> None:
    assert find_hardware("a100").peer_link.name == "NVLink 3"
    assert find_hardware("l4").peer_link.name == "PCIe 4.0 x16"
    assert find_hardware("b200").peer_link.bandwidth == 900e9


def test_an_unknown_gpu_lists_the_known() -> None:
    with pytest.raises(SimplaceError, match=r"'k80' is not a GPU .* it has a10, a100, a100-40gb"):
        find_hardware("k80")
