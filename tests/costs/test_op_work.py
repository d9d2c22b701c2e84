"""FLOPs and bytes of the ops that matter."""

import pytest

from simplace.costs.cost_model import OpCall
from simplace.costs.op_work import count_work, make_tensor


def call(op: str, inputs: list[tuple[int, ...]], output: tuple[int, ...], **attrs: object) -> OpCall:
    made = tuple(make_tensor("float32", shape, 4) for shape in inputs)
    return OpCall("n", op, "CPU", attrs, made, (make_tensor("float32", output, 4),))


@pytest.mark.parametrize(
    ("one", "flops"),
    [
        (call("MatMul", [(8, 4), (4, 6)], (8, 6)), 2 * 8 * 4 * 6),
        (call("MatMul", [(4, 8), (4, 6)], (8, 6), transpose_a=True), 2 * 8 * 4 * 6),
        (call("BatchMatMulV2", [(3, 8, 4), (3, 4, 6)], (3, 8, 6)), 2 * 3 * 8 * 4 * 6),
        (call("Einsum", [(8, 4), (4, 6)], (8, 6), equation=b"ab,bc->ac"), 2 * 8 * 4 * 6),
        (call("Conv2D", [(1, 10, 10, 3), (3, 3, 3, 16)], (1, 8, 8, 16)), 2 * 8 * 8 * 16 * 27),
        (call("Conv2DBackpropFilter", [(1, 10, 10, 3), (4,), (1, 8, 8, 16)], (3, 3, 3, 16)), 2 * 8 * 8 * 16 * 27),
        (call("Conv2DBackpropInput", [(4,), (3, 3, 3, 16), (1, 8, 8, 16)], (1, 10, 10, 3)), 2 * 8 * 8 * 16 * 27),
        (call("AddV2", [(5, 5), (5, 5)], (5, 5)), 25),
        (call("AddN", [(5,), (5,), (5,)], (5,)), 10),
        (call("Tanh", [(10,)], (10,)), 160),
        (call("Sum", [(4, 5), (1,)], (4,)), 20),
        (call("Reshape", [(4, 5), (1,)], (20,)), 0),
    ],
)
def test_flops(one: OpCall, flops: int) -> None:
    assert count_work(one).flops == flops


def test_unknown_op_counts_bytes_and_says_so() -> None:
    found = count_work(call("SomeNewOp", [(10,)], (10,)))
    assert (found.flops, found.bytes, found.is_guess) == (0, 80, True)


def test_an_element_that_is_handed_over_is_not_moved() -> None:
    found = count_work(call("IteratorGetNext", [()], (4096, 1024)))
    assert (found.flops, found.bytes, found.is_guess) == (0, 0, False)


def test_free_op_moves_nothing() -> None:
    assert count_work(call("Identity", [(10,)], (10,))).bytes == 0
