"""Ops estimated by the fitted model: their family, what bounds them, and what stays with the roofline."""

import json
import sys
from collections import Counter
from collections.abc import Callable

import pytest

from simplace.costs.cost_model import CollectiveCall, CostModel, KernelCost, OpCall, Tensor
from simplace.costs.gpu_constants import GpuConstants, format_constants, read_constants
from simplace.costs.gpu_sheets import SHEETS
from simplace.costs.modelled_costs import make_modelled_costs
from simplace.costs.op_work import make_tensor
from simplace.costs.product_shape import Product, find_product
from simplace.costs.roofline import make_roofline


def floats(*shape: int, dtype: str = "float32", size: int = 4) -> Tensor:
    return make_tensor(dtype, shape, size)


def call(op: str, inputs: list[Tensor], output: Tensor, device: str = "GPU", **attrs: object) -> OpCall:
    return OpCall("node", op, device, attrs, tuple(inputs), (output,))


MATMUL = call("MatMul", [floats(512, 768), floats(768, 1024)], floats(512, 1024))
IMAGE = floats(8, 32, 32, 16)
ADD = call("AddV2", [floats(4096, 4096), floats(4096, 4096)], floats(4096, 4096))


@pytest.mark.parametrize(
    ("op", "product"),
    [
        (MATMUL, Product(1, 512, 1024, 768)),
        (call("MatMul", [floats(5, 3), floats(7, 3)], floats(5, 7), transpose_b=True), Product(1, 5, 7, 3, True)),
        (call("MatMul", [floats(3, 5), floats(3, 7)], floats(5, 7), transpose_a=True), Product(1, 5, 7, 3)),
        (call("BatchMatMulV2", [floats(2, 6, 5, 3), floats(2, 6, 3, 7)], floats(2, 6, 5, 7)), Product(12, 5, 7, 3)),
        (
            call("Einsum", [floats(2, 9, 6, 4), floats(2, 8, 6, 4)], floats(2, 6, 9, 8), equation=b"aecd,abcd->acbe"),
            Product(12, 9, 8, 4),
        ),
        (call("Einsum", [floats(2, 9)], floats(9), equation=b"ab->b"), None),
        (
            call("Conv2D", [floats(8, 32, 32, 16), floats(3, 3, 16, 64)], floats(8, 32, 32, 64)),
            Product(1, 8192, 64, 144, is_image=True),
        ),
        (
            call("Conv2DBackpropFilter", [IMAGE, floats(4), floats(8, 32, 32, 64)], floats(3, 3, 16, 64)),
            Product(1, 144, 64, 8192, is_image=True),
        ),
        (
            call("Conv2DBackpropInput", [floats(4), floats(3, 3, 16, 64), floats(8, 32, 32, 64)], IMAGE),
            Product(1, 8192, 16, 576, is_image=True),
        ),
        (ADD, None),
    ],
)  # fmt: skip
def test_the_product_behind_an_op(op: OpCall, product: Product | None) -> None:
    assert find_product(op) == product


def test_a_large_addition_is_bound_by_memory() -> None:
    cost = make_modelled_costs("t4").kernel(ADD)
    assert (cost.source, cost.bound) == ("modelled", "memory")
    assert cost.share == pytest.approx(0.75, abs=0.02)  # what a T4's memory reaches
    assert cost.error == read_constants().errors["elementwise"]


def test_a_small_addition_is_bound_by_latency() -> None:
    assert make_modelled_costs().kernel(call("AddV2", [floats(8), floats(8)], floats(8))).bound == "latency"


def test_a_large_product_is_bound_by_arithmetic() -> None:
    square = floats(4096, 4096)
    cost = make_modelled_costs("v100-pcie").kernel(call("MatMul", [square, square], square))
    assert (cost.bound, cost.error) == ("arithmetic", read_constants().errors["linear"])
    assert 0.85 < cost.share < 1


def test_tf32_is_what_tensorflow_allows_unless_told_otherwise() -> None:
    square = floats(4096, 4096)
    op = call("MatMul", [square, square], square)
    fast, plain = (make_modelled_costs("a100", allows_tf32=allows).kernel(op) for allows in (True, False))
    assert fast.device_s < plain.device_s / 4


def test_half_precision_on_tensor_cores() -> None:
    half = floats(4096, 4096, dtype="float16", size=2)
    single = floats(4096, 4096)
    t4 = make_modelled_costs("t4")
    assert (
        t4.kernel(call("MatMul", [half, half], half)).device_s
        < t4.kernel(call("MatMul", [single] * 2, single)).device_s / 5
    )


@pytest.mark.parametrize(
    "op",
    [
        call("MatMul", [floats(512, 768), floats(768, 1024)], floats(512, 1024), device="CPU"),
        call("TopKV2", [floats(512, 768), make_tensor("int32", (), 4)], floats(512, 5)),
        call("Reshape", [floats(512, 768)], floats(768, 512)),
    ],
)
def test_what_no_formula_covers_keeps_the_roofline(op: OpCall) -> None:
    assert make_modelled_costs("t4").kernel(op) == make_roofline("t4").kernel(op)


def test_softmax_is_three_kernels() -> None:
    small = floats(4, 16)
    constants = read_constants().groups["traffic"]
    cost = make_modelled_costs().kernel(call("Softmax", [small], small))
    assert cost.device_s == pytest.approx(3 * constants["floor_s"], rel=0.01)


def test_training_reads_an_image_twice_to_normalise_it() -> None:
    image, scale = floats(64, 56, 56, 256), floats(256)
    op = call("FusedBatchNormV3", [image, scale, scale, scale, scale], image, is_training=True)
    rest = call("FusedBatchNormV3", [image, scale, scale, scale, scale], image, is_training=False)
    model = make_modelled_costs()
    assert model.kernel(op).device_s > 1.3 * model.kernel(rest).device_s


def test_launches_and_shards_are_the_roofline_s() -> None:
    modelled, roofline = make_modelled_costs("t4").kernel(ADD), make_roofline("t4").kernel(ADD)
    assert (modelled.host_s, modelled.shards) == (roofline.host_s, roofline.shards)
    assert isinstance(modelled, KernelCost)


def test_an_op_is_priced_in_few_steps() -> None:
    """It takes some microseconds; whoever read the table of constants for each op would make thousands of calls."""
    model = make_modelled_costs("t4")
    calls = [call("MatMul", [floats(n, 768), floats(768, 1024)], floats(n, 1024)) for n in range(512, 1512)]
    made = Counter[str]()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, what: made.update([event]))
    try:
        for op in calls:
            model.kernel(op)
    finally:
        sys.setprofile(before)
    assert made["call"] + made["c_call"] < 200 * len(calls)


@pytest.mark.parametrize("gpu", ["a100", "v100", "t4", "l4"])
def test_a_copy_between_gpus_is_no_faster_than_what_an_all_reduce_sends(gpu: str) -> None:
    costs, size = make_modelled_costs(gpu), 10**9
    reduced = costs.collective(CollectiveCall("all_reduce", size, 2, "GPU")).device_s
    assert costs.copy(size, "GPU", "GPU") == pytest.approx(reduced, rel=0.1)  # of two GPUs each sends all it has
    assert costs.copy(size, "CPU", "GPU") == make_roofline(gpu).copy(size, "CPU", "GPU")


@pytest.mark.parametrize("make", [make_modelled_costs, make_roofline])
def test_logical_gpus_of_a_card_copy_and_reduce_within_its_memory(make: Callable[[str], CostModel]) -> None:
    costs, size = make("t4"), 10**9
    copied = costs.copy(size, "GPU", "same GPU")
    assert 2 * size / SHEETS["t4"].bandwidth <= copied < costs.copy(size, "GPU", "GPU") / 3
    for gpus, op, times in (
        (2, "all_reduce", 2), (2, "broadcast", 1), (4, "all_reduce", 6), (4, "alltoall", 3), (4, "reduce_scatter", 3),
    ):  # fmt: skip
        found = costs.collective(CollectiveCall(op, size, gpus, "GPU", is_on_card=True))
        assert (found.device_s, found.source) == (pytest.approx(times * copied), "guessed")


def test_constants_survive_a_round_trip() -> None:
    constants = read_constants()
    values = json.loads(format_constants(constants))
    assert GpuConstants(values["groups"], values["errors"], tuple(values["sources"])) == constants
    assert format_constants(constants) == format_constants(
        GpuConstants(values["groups"], values["errors"], constants.sources)
    )


def test_every_constant_is_a_finite_number() -> None:
    for group in read_constants().groups.values():
        assert all(isinstance(value, float | int) and 0 <= value < 1e15 for value in group.values())
