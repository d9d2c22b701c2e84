"""Collectives: what a hand can compute, and what grows with what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplace.costs.collectives import COLLECTIVES, Fabric, find_fabric, time_collective
from simplace.costs.gpu_constants import read_constants
from simplace.costs.gpu_sheets import SHEETS

FABRICS = st.sampled_from(
    [Fabric("switch", 3e11), Fabric("mesh", 1.5e11), Fabric("pcie", 1.5e10), Fabric("host", 1.5e10)]
)
CONSTANTS = read_constants().groups["collectives"]


def test_large_all_reduces_run_at_the_measured_bus_bandwidth() -> None:
    size = 1 << 30  # vTrain's tables: 197, 222 and 229 GB/s with 2, 4 and 8 A100s
    for gpus, measured in ((2, 197), (4, 222), (8, 229)):
        seconds = time_collective("all_reduce", size, gpus, find_fabric(SHEETS["a100"]), CONSTANTS)
        assert 2 * (gpus - 1) / gpus * size / seconds / 1e9 == pytest.approx(measured, rel=0.05)


@given(FABRICS, st.sampled_from(COLLECTIVES), st.integers(2, 8), st.integers(1, 2**32), st.integers(1, 2**32))
def test_a_collective_grows_with_its_size(fabric: Fabric, op: str, gpus: int, one: int, more: int) -> None:
    first, second = (time_collective(op, size, gpus, fabric, CONSTANTS) for size in sorted((one, more)))
    assert 0 < first <= second * (1 + 1e-9)


@given(FABRICS, st.sampled_from(COLLECTIVES), st.integers(2, 8), st.integers(1, 2**32))
def test_a_network_between_machines_makes_it_slower(fabric: Fabric, op: str, gpus: int, size: int) -> None:
    far = Fabric(fabric.kind, fabric.bandwidth, 1e9)
    assert time_collective(op, size, gpus, far, CONSTANTS) > time_collective(op, size, gpus, fabric, CONSTANTS)


def test_a_ring_is_as_slow_as_the_slower_of_machine_and_network() -> None:
    size, slow, fast = 1 << 30, Fabric("pcie", 1.5e10, 1e9), Fabric("pcie", 1.5e10, 1e12)
    sent, alone = 2 * 7 / 8 * size, time_collective("all_reduce", size, 8, Fabric("pcie", 1.5e10), CONSTANTS)
    assert time_collective("all_reduce", size, 8, slow, CONSTANTS) == pytest.approx(
        sent / (1e9 * CONSTANTS["network"]), rel=0.02
    )
    assert time_collective("all_reduce", size, 8, fast, CONSTANTS) == pytest.approx(alone, rel=0.01)


def test_a_network_behind_the_host_memory_is_slower() -> None:
    peers, host = (
        time_collective("all_reduce", 1 << 30, 8, Fabric(kind, 1e12, 1e9), CONSTANTS) for kind in ("pcie", "host")
    )
    assert host / peers == pytest.approx(CONSTANTS["network"] / CONSTANTS["network_host"], rel=0.02)


@pytest.mark.parametrize("op", COLLECTIVES)
def test_one_gpu_alone_sends_nothing(op: str) -> None:
    assert time_collective(op, 1e6, 1, Fabric("switch", 3e11), CONSTANTS) == 0
