"""Scratch memory of kernels on a CPU: the sizes that TensorFlow's own log shows are in the doctest."""

from simplace.costs.cost_model import Tensor
from simplace.executor.kernel_scratch import KernelCall, list_scratch
from simplace.executor.trace import SCRATCH
from tests.executor.worlds import run

SIZES = Tensor("int32", (4,), 16)


def floats(*shape: int) -> Tensor:
    size = 4
    for dim in shape:
        size *= dim
    return Tensor("float32", shape, size)


def test_large_images_are_taken_one_by_one_for_the_gradient_of_the_input() -> None:
    window, gradient, image = floats(3, 3, 64, 64), floats(8, 56, 56, 64), floats(8, 58, 58, 64)
    columns = 56 * 56 * 3 * 3 * 64 * 4
    assert (
        sum(list_scratch(KernelCall("Conv2DBackpropInput", [SIZES, window, gradient], [image]), threads=1)) == columns
    )
    assert (
        sum(list_scratch(KernelCall("Conv2DBackpropFilter", [image, SIZES, gradient], [window]), threads=1)) > columns
    )


def test_the_gradient_of_a_pooling_keeps_a_position_for_each_maximum() -> None:
    given, largest = floats(2, 8, 8, 3), floats(2, 4, 4, 3)
    assert (
        sum(list_scratch(KernelCall("MaxPoolGrad", [given, largest, largest], [given]), threads=2)) == 8 * 2 * 4 * 4 * 3
    )


def test_other_kernels_take_none() -> None:
    assert sum(list_scratch(KernelCall("MatMul", [floats(2, 2), floats(2, 2)], [floats(2, 2)]), threads=1)) == 0


POOLING = """
    x = Placeholder() @{0} {{dtype=float, _output_shapes=(dims(2, 8, 8, 3),)}}
    y = Placeholder() @{0} {{dtype=float, _output_shapes=(dims(2, 4, 4, 3),)}}
    g = MaxPoolGrad(x, y, y) @{0} {{ksize=(1, 2, 2, 1), strides=(1, 2, 2, 1), padding=b"VALID",
        _output_shapes=(dims(2, 8, 8, 3),)}}
"""


def test_scratch_memory_ends_with_its_kernel() -> None:
    changes = run(POOLING.format("c").replace("\n        _", " _")).trace.memory
    scratch = [change.change for change in changes if change.slot == SCRATCH]
    copied = 2 * 4 * 4 * 3 * 4  # of what the kernel computes again, since others hold it
    assert scratch == [copied, 768, -768, -copied]
    assert not [change for change in run(POOLING.format("g0").replace("\n        _", " _")).trace.memory
                if change.slot == SCRATCH]  # fmt: skip
