"""Derive what a CPU reaches from the times of its probes: products, elementwise ops, reductions, the smallest kernel.

What disturbs a probe only makes it longer, so each time is the best of several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from simplace.costs.calibrated_cpu import CalibratedCpu, Rates, read_rate
from simplace.costs.cost_model import OpCall
from simplace.costs.op_work import count_work, make_tensor

_LEAST_SHARE = 0.1  # of a time is work, however near it is to that of the smallest kernel
_TENSORS = 3  # of a sum: two are read, one is made


def derive_cpu(probes: Mapping[str, Any]) -> CalibratedCpu:
    """Return the figures of a CPU.

    `probes` has its `model`, `cores` and `clock`; `least_s`, the seconds of the smallest kernel; and, on one core, the
    pairs (FLOPs, seconds) of `products` by data type, (elements, seconds) of `exp`, and (bytes of a tensor, seconds) of
    `reads`, where it is read alone, and of `sums`, of two of them, by the first. `together` is the last sum on all
    cores.

    >>> times = {"products": {"float32": [(2e9, 0.021)]}, "exp": (1 << 26, 0.051), "together": (1e8, 0.016)}
    >>> times |= {"reads": [(1e8, 0.011)], "sums": [(1e8, 0.041)]}
    >>> cpu = derive_cpu({"model": "A", "cores": 2, "clock": 0.0, "least_s": 0.001, **times})
    >>> [round(rate / 1e8) for rate in (cpu.reads[0][1], cpu.writes[0][1], cpu.core_bandwidth, cpu.bandwidth)]
    [100, 50, 75, 200]
    """
    least_s = float(probes["least_s"])
    reads = tuple((float(size), size / _leave_out(t, least_s)) for size, t in probes["reads"])
    reads = tuple(sorted((*reads, *_find_faster_reads(probes["sums"], reads, least_s))))
    writes = tuple(_find_writes(probes["sums"], reads, least_s))
    (elements, exp_s), (size, together_s) = probes["exp"], probes["together"]
    products = {
        dtype: tuple((float(flops), flops / _leave_out(t, least_s)) for flops, t in times)
        for dtype, times in probes["products"].items()
    }
    x = make_tensor("float32", (elements,), 4)
    flops = count_work(OpCall("exp", "Exp", "CPU", {}, (x,), (x,))).flops  # as the roofline will count them
    cpu = CalibratedCpu(
        probes["model"], probes["cores"], probes["clock"], products, flops / _leave_out(exp_s, least_s), reads, writes,
        _TENSORS * size / _leave_out(together_s, least_s), least_s,
    )  # fmt: skip
    return replace(cpu, bandwidth=max(cpu.core_bandwidth, cpu.bandwidth))


def _find_faster_reads(
    sums: Iterable[tuple[float, float]], reads: Rates, least_s: float
) -> Iterable[tuple[float, float]]:
    """Yield the rates of reading where a sum was done sooner than its two tensors would have been read alone.

    There the arithmetic of the reductions was the slower part, or something disturbed them; reading and making are
    taken to be equally fast.
    """
    for size, t in sums:
        read = 2.0 * size
        if least_s + read / read_rate(reads, read) > (1 - _LEAST_SHARE) * t:
            yield read, _TENSORS * size / _leave_out(t, least_s)


def _find_writes(sums: Iterable[tuple[float, float]], reads: Rates, least_s: float) -> Iterable[tuple[float, float]]:
    """Yield the rates of what is made: a sum takes the reading of two tensors, and the making of one."""
    for size, t in sums:
        read = 2.0 * size
        yield float(size), size / _leave_out(t, least_s + read / read_rate(reads, read))


def _leave_out(seconds: float, others_s: float) -> float:
    return max(seconds - others_s, _LEAST_SHARE * seconds)
