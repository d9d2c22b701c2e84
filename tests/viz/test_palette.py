from __future__ import annotations

from itertools import combinations

import pytest

from viz.figure import Group
from viz.palette import FAINT_INK, INK, WARNING_INK, DeviceLook, contrast, look

# Machado, Oliveira & Fernandes (2009), severity 1.0: linear RGB as a colour-blind reader sees it.
VISION = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def device(kind: str, index: int) -> DeviceLook:
    return look(Group("", "", kind=kind, index=index))


@pytest.mark.parametrize("kind", ["CPU", "GPU", "TPU", "NPU"])
def test_text_reads_well_on_each_fill(kind: str) -> None:
    for index in range(24):
        one = device(kind, index)
        assert contrast(INK, one.fill) >= 7
        assert contrast(FAINT_INK, one.fill) >= 4.5
        assert contrast(FAINT_INK, one.backdrop) >= 7
        assert contrast(WARNING_INK, one.fill) >= 4.5


def test_kinds_differ_without_colour() -> None:
    patterns = {kind: (device(kind, 0).corner, device(kind, 0).border) for kind in ("CPU", "GPU", "TPU", "NPU")}
    assert len(set(patterns.values())) == 4


def test_24_devices_of_a_kind_all_look_different() -> None:
    assert len({device("GPU", index) for index in range(24)}) == 24


@pytest.mark.parametrize("vision", sorted(VISION))
def test_first_four_gpus_differ_for_each_kind_of_sight(vision: str) -> None:
    fills = [_seen(device("GPU", index).fill, vision) for index in range(4)]
    closest = min(_distance(one, other) for one, other in combinations(fills, 2))
    assert closest > 4  # CIE76; 2.3 is the least difference that an eye sees


def _seen(colour: str, vision: str) -> tuple[float, ...]:
    linear = [_linear(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5)]
    return _lab(
        [sum(share * part for share, part in zip(row, linear, strict=True)) for row in VISION[vision]],
    )


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def _lab(rgb: list[float]) -> tuple[float, ...]:
    red, green, blue = (min(max(part, 0), 1) for part in rgb)
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    fx, fy, fz = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def _distance(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5
