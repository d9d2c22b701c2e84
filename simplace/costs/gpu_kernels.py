"""How long kernels of a GPU take, by families, from figures of a data sheet and a page of fitted constants.

The formulas use operators alone, so that they take floats (to estimate an op) and numpy arrays (to fit constants to
thousands of measurements) alike. Each returns a `KernelTime`: seconds of the whole, and how long arithmetic and DRAM
alone would have kept the GPU busy at the peaks of its data sheet.

- A product is cut into tiles, one a thread block; blocks are handed to the SMs in waves, and the last wave is not full.
  cuBLAS has kernels for some shapes of tiles and may split the sum over k among blocks; it is taken to choose what the
  formula says is fastest. A tile's loop over k has a start and an end, counted as some steps of k more.
- Arithmetic, traffic between SMs and the L2 cache, and DRAM overlap, but not wholly: a power mean of the three.
- A board holds a power limit. Work on all SMs is taken to run no faster than so many FLOP/s a watt, by the process that
  the chip is made in; so do T4 and L4, which reach half and less of their peak.
- Rows of softmax and of normalisations are read again in a second pass; from the L2 cache where the rows of all
  resident blocks fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from math import ceil, inf
from typing import Any, NamedTuple

from simplace.costs.gpu_sheet import GpuSheet

Numbers = Any  # a float, or a numpy array of them while constants are fitted
Sizes = tuple[Numbers, Numbers, Numbers, Numbers]  # of products: how many, their rows, columns, and terms of a sum
Constants = Mapping[str, float]

# FLOP/s a watt of a process in units of TSMC's N7. TSMC gives N5 70 % of N7's power at the same speed (VLSI 2020), and
# N4P 22 % better efficiency than N5 (press release of 26 October 2021), together 1.83; so do the peaks on tensor cores
# over the power of the H100 and A100, 1.81. 4NP is by that of the B200, since no foundry's figure tells of it. 8N is
# taken to be like N7.
_PROCESS_EFFICIENCY = {"28HP": 0.5, "16FF": 1.0, "12FFN": 1.0, "8N": 1.0, "N7": 1.0, "4N": 1.83, "4NP": 2.88}
_MODERN = 8.0  # the compute capability from which cuBLAS has the kernels of the A100
_BLACKWELL = 10.0  # tcgen05.mma of the PTX ISA: a pair of blocks loads each half of an operand
# The V100 delivers 1.5 times the memory bandwidth of the P100, by a new memory controller too ("NVIDIA Tesla V100 GPU
# Architecture", WP-08608), at 900 against 732 GB/s: the P100 reaches less of its own.
_FIRST_HBM2 = 900 / 732 / 1.5
_VOLTA = 7.0  # before it, pages of memory weigh more
_KNEE = 16.0  # how abruptly the lower one of a rate and a limit wins
_HIDDEN = 6.0  # how well walks of page tables hide behind the rest, or the rest behind them
_NARROW, _BARRED = 4096, 1e3  # batched products have no tiles as narrow as this
_LEAST_K = 64  # steps of k that a block of a split product has at least
_SIMT_TILES = ((128, 128, "tile_128x128"), (128, 64, "tile_128x64"), (64, 128, "tile_64x128"),
               (64, 64, "tile_64x64"),
               (128, 32, "tile_128x32"), (32, 128, "tile_128x32"))  # fmt: skip
_TENSOR_TILES = ((256, 128, "tile_256x128"), (128, 128, "tile_128x128"), (64, 128, "tile_64x128"),
                 (64, 64, "tile_64x64"), (16, 64, "tile_16x64"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class GpuFigures:
    """Record of what the formulas read of a data sheet; each field may be an array, one value a measurement.

    `is_modern`, `is_early`, `is_hbm` are 0 or 1; `threads` fit on an SM at once; `lanes` are FP32 cores of an SM;
    `power` is the board's watts times the efficiency of its process; `sharing` blocks load an operand together.
    """

    sms: Numbers
    lanes: Numbers
    clock: Numbers
    bandwidth: Numbers
    l2: Numbers
    power: Numbers
    threads: Numbers
    is_modern: Numbers
    is_early: Numbers
    is_hbm: Numbers
    sharing: Numbers


class KernelTime(NamedTuple):
    """Record of a kernel's time in seconds: the whole, arithmetic at the peak, DRAM at the peak, and the least time."""

    seconds: Numbers
    arithmetic: Numbers
    memory: Numbers
    floor: Numbers


def read_figures(sheet: GpuSheet) -> GpuFigures:
    """Return the figures of a data sheet.

    >>> from simplace.costs.gpu_sheets import SHEETS
    >>> read_figures(SHEETS["t4"]).threads
    1024.0
    """
    threads = {7.5: 1024.0, 8.6: 1536.0, 8.9: 1536.0}.get(sheet.capability, 2048.0)
    return GpuFigures(
        float(sheet.sms), float(sheet.lanes), sheet.clock, sheet.bandwidth, float(sheet.l2),
        sheet.watts * _PROCESS_EFFICIENCY[sheet.process], threads,
        float(sheet.capability >= _MODERN), float(sheet.capability < _VOLTA),
        float(sheet.memory_kind.startswith("HBM")),
        2.0 if sheet.capability >= _BLACKWELL else 1.0,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProductPlan:
    """Record of all of a product's time that does not depend on its shape.

    `tiles` have their two sides, the seconds that a step of k takes on all SMs by arithmetic, and by traffic with the
    L2 cache, and whether batched products have them. Constants that each tile needs are fields of their own.
    """

    gpu: GpuFigures
    c: Constants
    peak: Numbers
    width: int
    tiles: tuple[tuple[int, int, Numbers, Numbers, bool], ...]
    least_s: Numbers  # an addition and a multiplication take, on full SMs by the best tile
    walk_s: Numbers  # a FLOP takes that waits for page tables, where a tile's rows lie on many pages
    walk_k: Numbers  # from which on half of them do
    bandwidth: Numbers
    overlap: float
    quantum: float
    extra_k: float
    alone: float
    split_s: float


def plan_products(gpu: GpuFigures, c: Constants, peak: Numbers, width: int, on_tensor_cores: bool) -> ProductPlan:
    """Return a plan for products of elements of `width` bytes, at a `peak` rate in FLOP/s."""
    rate = _sustain_rate(gpu, c, peak)
    cache_s = width / (c["l2_bytes"] * gpu.clock * gpu.sharing)
    tiles = []
    for tile_m, tile_n, key in _TENSOR_TILES if on_tensor_cores else _SIMT_TILES:
        efficiency = c[key] if on_tensor_cores else blend(gpu.is_modern, c[key], c.get(key + "_old", c[key]))
        step_s = 2 * tile_m * tile_n * gpu.sms / (rate * efficiency)
        is_batched = on_tensor_cores or tile_m * tile_n > _NARROW
        tiles.append((tile_m, tile_n, step_s, (tile_m + tile_n) * cache_s, is_batched))
    walk_s, walk_k = rate * 0.0, rate * 0.0 + 1
    if not on_tensor_cores:
        walk_s = 1 / (blend(gpu.is_early, c["pages_early"], c["pages"]) * gpu.clock)
        walk_k = blend(gpu.is_early, c["pages_k_early"], c["pages_k"])
    least_s = reduce(smaller, (step_s / (tile_m * tile_n * gpu.sms) for tile_m, tile_n, step_s, _, _ in tiles))
    return ProductPlan(
        gpu, c, peak, width, tuple(tiles), least_s, walk_s, walk_k, _reach_bandwidth(gpu, c) * gpu.bandwidth,
        *(c[name] for name in ("overlap", "quantum", "extra_k", "alone", "split_s")),
    )  # fmt: skip


def time_product(
    plan: ProductPlan, b: Numbers, m: Numbers, n: Numbers, k: Numbers, along_k: Numbers = 0.0, moved: Numbers = None
) -> KernelTime:
    """Return the time of b products of m x k by k x n.

    `along_k` is 1 where both operands lie along k in memory, as in x times the transpose of w: tiles then read as many
    pages as they have rows. `moved` are the bytes through DRAM where they are fewer than those of three matrices: a
    convolution's image is smaller than the matrix that it stands for.
    """
    floor_s = plan.c["floor_s"]
    traffic = plan.width * b * (m * k + k * n + m * n) if moved is None else moved
    seconds = time_product_alone(plan, (b, m, n, k), along_k, traffic) + floor_s
    return KernelTime(seconds, 2 * b * m * n * k / plan.peak, traffic / plan.gpu.bandwidth, floor_s)


def time_product_alone(
    plan: ProductPlan, sizes: Sizes, along_k: Numbers, traffic: Numbers, most_s: float = inf
) -> Numbers:
    """Return the seconds of products without the start of their kernel; `traffic` are the bytes through DRAM.

    `sizes` are b, m, n and k: so many products of m x k by k x n. One that takes longer than `most_s` may be infinite:
    then nobody wants to know how long it takes.
    """
    (b, m, n, k), power, is_one = sizes, plan.overlap, isinstance(plan.gpu.sms, float)
    if is_one and max(b * m * n * k * plan.least_s, traffic / plan.bandwidth) >= most_s:
        return inf
    cost = _find_least_cost(plan, b, m, n, k, most_s) if is_one else _find_least_costs(plan, b, m, n, k)
    moved_s = (cost + (traffic / plan.bandwidth) ** power) ** (1 / power)
    if isinstance(along_k, float) and not along_k:
        return moved_s
    far = (k / plan.walk_k) ** 2
    walks = along_k * 2 * b * m * n * k * plan.walk_s * far / (1 + far)
    return (moved_s**_HIDDEN + walks**_HIDDEN) ** (1 / _HIDDEN)


def _find_least_cost(plan: ProductPlan, b: float, m: float, n: float, k: float, most_s: float) -> float:
    """Return the least of all tilings' sums of arithmetic and traffic with the L2 cache, as powers of seconds.

    The formula of `_time_tiling`, for one product: a tiling is left as soon as it can't be the fastest any more, or
    below `most_s`; infinite where none is.
    """
    sms, power, quantum, extra_k, is_single = plan.gpu.sms, plan.overlap, plan.quantum, plan.extra_k, b <= 1
    may_split, sums_s = k // _LEAST_K - 1 if is_single else 0, _time_sums(plan, b, m, n)
    best = inf
    for tile_m, tile_n, step_s, cache_s, is_batched in plan.tiles:
        tiles = b * -(-m // tile_m) * -(-n // tile_n) / sms
        if tiles * k * step_s >= most_s or not (is_batched or is_single):
            continue
        more = min(1 // tiles, may_split) if tiles <= 1 else 0  # blocks that fill the SMs once
        for split in (1 + more, 1) if more > 0 else (1,):
            blocks, split_k = tiles * split, k / split + extra_k
            full = blocks if blocks > 1 else 1.0
            if full * split_k * step_s >= most_s:
                continue
            busiest = ceil(blocks)
            steps = (full * (1 - quantum) + busiest * quantum) * split_k
            compute, cache = steps * step_s, steps * cache_s
            if busiest < 2:
                compute *= 1 + plan.alone / 2
            if split > 1:
                compute += plan.split_s + (split - 1) * sums_s
            if compute < most_s and cache < most_s and (cost := compute**power + cache**power) < best:
                best, most_s = cost, cost ** (1 / power)
    return best


def _find_least_costs(plan: ProductPlan, b: Numbers, m: Numbers, n: Numbers, k: Numbers) -> Numbers:
    """Return the same of many products at once."""
    power, is_single = plan.overlap, b <= 1
    may_split, sums_s = is_single * (k // _LEAST_K - 1), _time_sums(plan, b, m, n)
    best: Numbers = None
    for tile_m, tile_n, step_s, cache_s, is_batched in plan.tiles:
        tiles = b * -(-m // tile_m) * -(-n // tile_n) / plan.gpu.sms
        barred = 1 if is_batched else 1 + _BARRED * (b > 1)
        for split in (1, 1 + larger(smaller(1 // tiles, may_split), 0)):
            compute, cache = _time_tiling(plan, step_s, cache_s, tiles, split, k, sums_s)
            cost = barred * (compute**power + cache**power)
            best = cost if best is None else smaller(best, cost)
    return best


def _time_sums(plan: ProductPlan, b: Numbers, m: Numbers, n: Numbers) -> Numbers:
    """Return the seconds of adding one more part of a split product into the result."""
    return 8 * b * m * n / (3 * plan.gpu.bandwidth)


def _time_tiling(
    plan: ProductPlan, step_s: Numbers, cache_s: Numbers, tiles: Numbers, split: Numbers, k: Numbers, sums_s: Numbers
) -> tuple[Numbers, Numbers]:
    """Return the seconds of arithmetic and of traffic with the L2 cache; `tiles` are those that an SM has."""
    blocks = tiles * split
    busiest = -(-blocks // 1)  # blocks of the SM that has most
    steps = (larger(blocks, 1) * (1 - plan.quantum) + busiest * plan.quantum) * (k / split + plan.extra_k)
    idle = 1 + plan.alone * larger(1 - busiest / 2, 0)
    return steps * step_s * idle + (split > 1) * plan.split_s + (split - 1) * sums_s, steps * cache_s


def time_traffic(gpu: GpuFigures, c: Constants, traffic: Numbers) -> KernelTime:
    """Return the time of an elementwise op, a copy or a reduction: bytes through DRAM, and a start."""
    alone = traffic / gpu.bandwidth
    return KernelTime(c["floor_s"] + alone / _reach_bandwidth(gpu, c), alone * 0, alone, c["floor_s"])


def time_rows(gpu: GpuFigures, c: Constants, rows: Numbers, cols: Numbers, width: int, kind: str) -> KernelTime:
    """Return the time of a "softmax" or a "norm" (layer or batch normalisation) along the columns of a matrix.

    A row is read once into registers where it is short; beyond, `again` passes more find it in L2 or not.
    """
    alone = 2 * width * rows * cols / gpu.bandwidth
    resident = gpu.sms * gpu.threads * c[f"{kind}_blocks"] / 2048 * cols * width
    missed = (resident / (gpu.l2 * c[f"{kind}_l2"])) ** c[f"{kind}_slope"]
    again = c[f"{kind}_again"] * missed / (1 + missed) + c[f"{kind}_cached"]
    seconds = alone / _reach_bandwidth(gpu, c) * (1 + again / 2 + c[f"{kind}_short"] / cols)
    return KernelTime(c["floor_s"] + seconds, alone * 0, alone, c["floor_s"])


def larger(a: Numbers, b: Numbers) -> Numbers:
    """Return the larger of two, element by element."""
    return a * (a >= b) + b * (a < b)


def smaller(a: Numbers, b: Numbers) -> Numbers:
    """Return the smaller of two, element by element."""
    return a * (a <= b) + b * (a > b)


def blend(share: Numbers, one: float, other: float) -> Numbers:
    """Return `one` where the share is 1 and `other` where it is 0."""
    return other + share * (one - other)


def _sustain_rate(gpu: GpuFigures, c: Constants, peak: Numbers) -> Numbers:
    """Return the arithmetic rate that a board keeps up within its power limit."""
    reached = peak * blend(larger(gpu.is_modern + (gpu.lanes - 64) / 64 - 1, 0), c["wide_sm"], c["reach"])
    limit = gpu.power * blend(gpu.is_modern, c["flops_per_watt"], c["flops_per_watt_old"])
    lower = smaller(reached, limit)
    return lower * ((lower / reached) ** _KNEE + (lower / limit) ** _KNEE) ** (-1 / _KNEE)


def _reach_bandwidth(gpu: GpuFigures, c: Constants) -> Numbers:
    """Return the share of the data sheet's bandwidth that large tensors reach."""
    return blend(gpu.is_hbm, c["hbm"] * blend(gpu.is_early, _FIRST_HBM2, 1.0), c["gddr"])
