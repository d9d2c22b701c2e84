"""The formulas of GPU kernels: answers that a hand can compute, and what must grow with what."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplace.costs.gpu_constants import read_constants
from simplace.costs.gpu_kernels import (
    GpuFigures,
    KernelTime,
    plan_products,
    read_figures,
    time_product,
    time_product_alone,
    time_rows,
    time_traffic,
)
from simplace.costs.gpu_sheets import SHEETS

# Ten SMs of 1e9 FLOP/s each; nothing but arithmetic takes time, and waves are whole.
PLAIN = {
    "reach": 1.0, "wide_sm": 1.0, "flops_per_watt": 1e15, "flops_per_watt_old": 1e15, "gddr": 1.0, "hbm": 0.5,
    "quantum": 1.0, "extra_k": 0.0, "alone": 0.0, "l2_bytes": 1e30, "split_s": 1.0, "overlap": 1.0, "floor_s": 0.0,
    "pages": 1e6, "pages_early": 1e3, "pages_k": 1.0, "pages_k_early": 1.0, "tile_128x128": 1.0, "tile_128x64": 0.01,
    "tile_64x128": 0.01, "tile_64x64": 0.01, "tile_128x32": 0.01, "norm_blocks": 1.0, "norm_l2": 1.0,
    "norm_slope": 1.0, "norm_again": 1.0, "norm_cached": 0.0, "norm_short": 0.0,
}  # fmt: skip
TEN = GpuFigures(10.0, 64.0, 1e9, 1e30, 1e6, 100.0, 2048.0, 1.0, 0.0, 0.0, 1.0)
GPUS = st.sampled_from(sorted(SHEETS))
SIZES = st.integers(1, 14).map(lambda power: 2**power)


def plain_product(b: float, m: float, n: float, k: float, gpu: GpuFigures = TEN) -> KernelTime:
    return time_product(plan_products(gpu, PLAIN, 1e10, 4, False), b, m, n, k)


def estimate(gpu: str, b: int, m: int, n: int, k: int, dtype: str = "float32", along_k: float = 0.0) -> KernelTime:
    groups, sheet = read_constants().groups, SHEETS[gpu]
    is_tensor = sheet.has_matrix_units(dtype)
    constants = {**groups["traffic"], **groups["tensor" if is_tensor else "simt"]}
    plan = plan_products(read_figures(sheet), constants, sheet.flops(dtype, is_tensor), 4, is_tensor)
    return time_product(plan, float(b), float(m), float(n), float(k), along_k)


def test_ten_tiles_take_one_wave_and_eleven_take_two() -> None:
    wave = 2 * 128 * 128 * 1000 / 1e9
    assert plain_product(10, 128, 128, 1000).seconds == pytest.approx(wave)
    assert plain_product(11, 128, 128, 1000).seconds == pytest.approx(2 * wave)


def test_a_single_product_with_few_tiles_is_split_over_k_and_pays_for_the_sums() -> None:
    wave = 2 * 128 * 128 * 1e6 / 1e9
    assert plain_product(1, 128, 128, 1e6).seconds == pytest.approx(wave / 10 + 1.0)
    assert plain_product(2, 128, 128, 1e6).seconds == pytest.approx(wave)  # batched products are not


def test_rows_on_pages_of_their_own_wait_for_walks_whatever_the_rate() -> None:
    early = replace(TEN, is_early=1.0)  # feeds 1e3 FLOP a clock: 1e12 FLOP/s, a hundred times less than arithmetic
    plans = [plan_products(gpu, PLAIN, 1e14, 4, False) for gpu in (early, TEN)]
    slow, fast = (time_product(plan, 1.0, 2048.0, 2048.0, 1e6, 1.0).seconds for plan in plans)
    assert slow == pytest.approx(2 * 2048**2 * 1e6 / 1e12)
    assert fast < slow / 10
    apart = time_product(plans[0], 1.0, 2048.0, 2048.0, 1e6).seconds  # with rows that lie across the sum
    assert apart == pytest.approx(fast)


def test_the_first_memory_on_the_chip_reaches_less_of_its_bandwidth() -> None:
    times = [time_traffic(read_figures(SHEETS[gpu]), PLAIN, 1e12) for gpu in ("p100", "v100")]
    p100, v100 = (time.seconds / time.memory for time in times)
    assert p100 / v100 == pytest.approx(1.5 * 732 / 900)


def test_traffic_takes_the_bandwidth_that_the_memory_reaches_and_a_start() -> None:
    gpu, constants = replace(TEN, bandwidth=100.0), {**PLAIN, "floor_s": 2.0}
    assert time_traffic(gpu, constants, 1000.0) == KernelTime(12.0, 0.0, 10.0, 2.0)
    assert time_traffic(replace(gpu, is_hbm=1.0), constants, 1000.0).seconds == 22.0


def test_rows_are_read_twice_where_the_cache_does_not_hold_them() -> None:
    gpu = replace(TEN, bandwidth=8000.0)
    once = 2 * 4 * 1000 * 100 / 8000.0
    small = time_rows(replace(gpu, l2=1e12), PLAIN, 1000.0, 100.0, 4, "norm")
    large = time_rows(replace(gpu, l2=1e-9), PLAIN, 1000.0, 100.0, 4, "norm")
    assert (small.seconds, large.seconds) == (pytest.approx(once), pytest.approx(1.5 * once))


@given(
    GPUS, st.sampled_from([1, 2, 16]), *[st.integers(1, 9000)] * 3, st.booleans(), st.sampled_from([0.0, 1.0])
)  # fmt: skip
def test_a_product_alone_takes_as_long_as_among_many(
    gpu: str, b: int, m: int, n: int, k: int, is_half: bool, along_k: float
) -> None:
    dtype = "float16" if is_half else "float32"
    groups, sheet = read_constants().groups, SHEETS[gpu]
    is_tensor = sheet.has_matrix_units(dtype)
    constants = {**groups["traffic"], **groups["tensor" if is_tensor else "simt"]}
    figures = GpuFigures(*(np.full(2, getattr(read_figures(sheet), name)) for name in GpuFigures.__slots__))
    plan = plan_products(figures, constants, np.full(2, sheet.flops(dtype, is_tensor)), 4, is_tensor)
    sizes = (np.full(2, float(size)) for size in (b, m, n, k, along_k))
    seconds = estimate(gpu, b, m, n, k, dtype, along_k).seconds
    assert time_product(plan, *sizes).seconds.tolist() == pytest.approx([seconds, seconds])


def test_a_product_that_takes_longer_than_wanted_is_not_searched_for() -> None:
    plan = plan_products(TEN, PLAIN, 1e10, 4, False)
    sizes = 1.0, 1280.0, 1280.0, 100.0
    took = time_product_alone(plan, sizes, 0.0, 0.0)
    assert time_product_alone(plan, sizes, 0.0, 0.0, 1.01 * took) == took
    assert time_product_alone(plan, sizes, 0.0, 0.0, 0.99 * took) == inf


@given(GPUS, SIZES, SIZES, SIZES, st.sampled_from(["float32", "float16"]))
def test_a_product_is_never_faster_than_its_peaks_and_grows_with_the_batch(
    gpu: str, m: int, n: int, k: int, dtype: str
) -> None:
    one, more = estimate(gpu, 2, m, n, k, dtype), estimate(gpu, 8, m, n, k, dtype)
    assert one.seconds >= max(one.arithmetic, one.memory)
    assert more.seconds >= one.seconds * (1 - 1e-9)


@given(GPUS, SIZES, SIZES, SIZES)
def test_a_batched_product_grows_with_each_of_its_sides(gpu: str, m: int, n: int, k: int) -> None:
    whole = estimate(gpu, 4, m, n, k).seconds
    for larger in ((2 * m, n, k), (m, 2 * n, k), (m, n, 2 * k)):
        assert estimate(gpu, 4, *larger).seconds >= whole * (1 - 1e-9)


@given(GPUS, st.integers(0, 10**10), st.integers(0, 10**10))
def test_traffic_grows_with_the_bytes(gpu: str, one: int, more: int) -> None:
    figures, constants = read_figures(SHEETS[gpu]), read_constants().groups["traffic"]
    first, second = (time_traffic(figures, constants, float(size)).seconds for size in sorted((one, more)))
    assert first <= second


def test_a_card_with_little_power_reaches_less_of_its_peak() -> None:
    shares = {gpu: estimate(gpu, 64, 1024, 1024, 1024, "float64").arithmetic for gpu in ("l4", "l40s")}
    assert shares["l4"] > shares["l40s"]
    t4, v100 = (2 * 4096**3 / estimate(gpu, 1, 4096, 4096, 4096).seconds for gpu in ("t4", "v100-pcie"))
    assert t4 < 0.6 * SHEETS["t4"].peak["float32"]
    assert v100 > 0.85 * SHEETS["v100-pcie"].peak["float32"]
