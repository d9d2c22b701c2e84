"""Which ops TensorFlow's own kernels run slower than memory, and what that costs."""

import math

import pytest

from simplace.costs.cost_model import COMPILED, OpCall
from simplace.costs.modelled_costs import make_modelled_costs
from simplace.costs.op_work import make_tensor
from simplace.costs.tensorflow_kernels import OwnKernel, find_own_kernel, find_transposes

WIDTHS = {"float32": 4, "float16": 2}
IMAGES = (64, 56, 56, 256)


def call(op: str, inputs: list[tuple[int, ...]], output: tuple[int, ...], dtype: str = "float32", **attrs) -> OpCall:
    given = tuple(make_tensor(dtype, shape, WIDTHS[dtype]) for shape in inputs)
    return OpCall("op", op, "GPU", attrs, given, (make_tensor(dtype, output, WIDTHS[dtype]),))


@pytest.mark.parametrize(
    ("op", "found"),
    [
        (call("Mul", [IMAGES, IMAGES], IMAGES), None),  # vectorized
        (call("Mul", [IMAGES, ()], IMAGES), None),  # a scalar is no broadcast
        (call("Mul", [IMAGES, (1, 1, 1, 256)], IMAGES), OwnKernel(0.8, math.prod(IMAGES))),
        (call("Sub", [(32, 128, 768), (32, 128, 1)], (32, 128, 768)), OwnKernel(1.1, 32 * 128 * 768)),
        (call("Mean", [IMAGES], (1, 1, 1, 256)), OwnKernel(1.8, math.prod(IMAGES), most=0.86 * 256)),
        (call("Mean", [(8, 64, 56, 28)], (1, 64, 1, 1)), OwnKernel(1.8, 8 * 64 * 56 * 28, most=0.86 * 64)),  # NCHW
        (call("Mean", [IMAGES], (1, 1, 1, 256), "float16"), OwnKernel(0.27, math.prod(IMAGES))),
        (call("Sum", [(16, 256, 8, 64)], (1, 1, 8, 64)), OwnKernel(0.27, 16 * 256 * 512)),
        (call("Sum", [(16, 256, 512)], (16, 256, 1)), None),  # along rows
        (call("Sum", [(16, 9000)], (9000,)), None),  # enough columns for all SMs
        (call("BiasAddGrad", [(4096, 512)], (512,)), OwnKernel(1.2, 4096 * 512)),
        (call("BiasAddGrad", [(4096, 512)], (512,), "float16"), OwnKernel(0.1, 4096 * 512)),
        (call("Tile", [(32, 128, 1)], (32, 128, 768)), OwnKernel(2.5, 32 * 128 * 768)),
        (call("Tile", [(1, 1, 1, 256)], IMAGES), OwnKernel(0.8, math.prod(IMAGES))),
        (call("Slice", [(1000, 64)], (10, 64)), OwnKernel(2.4, 640)),
        (call("Softmax", [(64, 1000)], (64, 1000)), OwnKernel(0.6, 64000, 3)),
        (call("MatMul", [(64, 64), (64, 64)], (64, 64)), None),
    ],
)
def test_which_kernels_are_slower_than_memory(op, found):
    assert find_own_kernel(op) == found


@pytest.mark.parametrize(
    ("equation", "found"),
    [
        (b"bhqd,bhkd->bhqk", None),  # batch first everywhere
        (b"bqhd,bkhd->bhqk", OwnKernel(0.6, 2 * 4 * 8 * 16 * 32, 2)),  # both operands are turned
        (b"ij,jk->ik", None),  # one product
        (b"...d,df->...f", None),
    ],
)
def test_operands_of_an_einsum_are_turned_where_the_batch_is_not_first(equation, found):
    assert find_transposes(call("Einsum", [(4, 8, 16, 32), (4, 8, 16, 32)], (4, 16, 8, 8), equation=equation)) == found


def test_a_broadcast_takes_as_long_as_its_divisions_and_what_xla_compiles_as_memory_does():
    model = make_modelled_costs("h200")
    op = call("Mul", [IMAGES, (1, 1, 1, 256)], IMAGES)
    own = model.kernel(op)
    assert own.device_s == pytest.approx(math.prod(IMAGES) / (0.8 * 132 * 1.98e9), rel=0.02)
    assert (own.source, own.error) == ("modelled", 0.232)
    compiled = model.kernel(OpCall(op.name, op.op, op.device_type, {COMPILED: True}, op.inputs, op.outputs))
    assert compiled.device_s < 0.5 * own.device_s
    assert compiled.host_s < own.host_s


def test_an_assignment_takes_over_its_buffer_and_an_addition_moves_three():
    model = make_modelled_costs("h200")
    value = make_tensor("float32", (1024, 1024), 4)
    handle = make_tensor("resource", (), None)
    assign = model.kernel(OpCall("a", "AssignVariableOp", "GPU", {}, (handle, value), ()))
    add = model.kernel(OpCall("a", "AssignAddVariableOp", "GPU", {}, (handle, value), ()))
    copy = model.kernel(call("Neg", [(1024, 1024)], (1024, 1024)))
    floor = model.constants.groups["traffic"]["floor_s"]
    assert (assign.host_s, assign.device_s) == (0.0, 0.0)
    assert add.device_s - floor == pytest.approx(1.5 * (copy.device_s - floor))
