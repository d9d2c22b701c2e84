"""What shapes TensorFlow lets a variable have; each answer was given by TensorFlow 2.21."""

from __future__ import annotations

import pytest

from simplace.graph import protos
from simplace.importers.variable_shape import find_shape_fault

HUGE = 2**40


@pytest.mark.parametrize(
    ("sizes", "fault"),
    [
        ((), ""),
        ((2**63 - 1,), ""),
        ((-1, HUGE, HUGE), ""),
        ((0, HUGE, HUGE), ""),
        ((1,) * 254, ""),
        ((1,) * 255, "Value specified for `shape` has 255 dimensions which is over the limit of 254."),
        ((-1, -2), "Shape [?,-2] has dimensions with values below -1 (where -1 means unknown)"),
        ((HUGE, HUGE, 0), f"Shape [{HUGE},{HUGE},0] is too large (more than 2**63 - 1 entries)"),
        ((HUGE, HUGE, -2), f"Shape [{HUGE},{HUGE},-2] is too large (more than 2**63 - 1 entries)"),
    ],
)
def test_a_fault_is_found_from_the_left(sizes: tuple[int, ...], fault: str) -> None:
    shape = protos.message_class("TensorShapeProto")()
    for size in sizes:
        shape.dim.add(size=size)
    assert find_shape_fault(shape) == fault
    shape.unknown_rank = True
    assert find_shape_fault(shape) == ""
