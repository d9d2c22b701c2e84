"""Times from work: whichever of arithmetic and traffic is slower."""

import pytest

from simplace.costs.cost_model import OpCall
from simplace.costs.op_work import make_tensor
from simplace.costs.roofline import make_roofline


def matmul(size: int, device: str, dtype: str = "float32") -> OpCall:
    one = make_tensor(dtype, (size, size), 4)
    return OpCall("m", "MatMul", device, {}, (one, one), (one,))


def test_large_matmul_is_bound_by_arithmetic() -> None:
    cost = make_roofline("t4").kernel(matmul(4096, "GPU"))
    assert cost.device_s == pytest.approx(2e-6 + 2 * 4096**3 / 8.1e12)
    assert cost.host_s == 8e-6


def test_add_is_bound_by_memory() -> None:
    one = make_tensor("float32", (1 << 20,), 4)
    cost = make_roofline("t4").kernel(OpCall("a", "AddV2", "GPU", {}, (one, one), (one,)))
    assert cost.device_s == pytest.approx(2e-6 + 3 * 4 * (1 << 20) / 320e9)


def test_matrix_units_take_float16() -> None:
    t4 = make_roofline("t4")
    assert t4.kernel(matmul(4096, "GPU", "float16")).device_s < t4.kernel(matmul(4096, "GPU")).device_s / 5


def test_matmul_of_512_on_a_core_is_within_what_was_measured() -> None:
    assert 1.5e-3 < make_roofline().kernel(matmul(512, "CPU")).host_s < 5e-3  # 1.5 to 3 ms on two cores


def test_copies_take_the_link_between_their_ends() -> None:
    model = make_roofline("a100")
    assert model.copy(10**9, "CPU", "CPU") == 0
    assert model.copy(10**9, "CPU", "GPU") == pytest.approx(1 / 31.5, rel=0.01)
    assert model.copy(10**9, "GPU", "GPU") == pytest.approx(1 / 300, rel=0.01)
    assert model.copy(10**9, "CPU", "remote") == pytest.approx(0.8, rel=0.01)
