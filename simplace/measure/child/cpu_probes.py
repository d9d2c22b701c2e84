"""Products, sums and reductions of several sizes, which show what this computer's CPU reaches, on one core and on all.

They take a few seconds, more on a busy machine. TensorFlow's own kernels run them, without oneDNN, as what is measured
beside them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from simplace.measure.child import steps
from simplace.measure.child.runnable import Runnable

_SIDES = {64: 8, 256: 4, 512: 4}  # of square matrices: how many products in a step
_SIZES = {1 << 10: 20, 1 << 14: 20, 1 << 18: 8, 1 << 21: 4, 1 << 24: 4}  # elements of float32, and how many ops
_LARGEST, _LARGE = max(_SIZES), 1 << 18
_SUMS_OF_LARGEST = 2  # they take longest
_KINDS = ("AddV2", "Mul", "Sub", "Maximum", "Minimum", "SquaredDifference")  # of the smallest kernels
_ROUNDS = 6
_EXP, _EXPS = 1 << 16, 20  # elements, and how many ops
_COLUMNS = 64
_DTYPES = ("float32", "float64")
_WIDTH = 4  # bytes of an element
_WARM_UP, _STEPS = 1, 5
_PROBE = "probe"
_NAME = re.compile(rf"{_PROBE}\d+")  # not the constants of a probe, whose names go on
_INFO = Path("/proc/cpuinfo")


def measure_cpu() -> dict[str, Any]:
    """Return what `costs.cpu_calibration.derive_cpu` reads."""
    cores, info = len(os.sched_getaffinity(0)), _read_info()
    return {
        "model": info.get("model name", ""),
        "cores": cores,
        "clock": float(info.get("bogomips", 0.0)) / 2 * 1e6,  # as TensorFlow takes it (utils/profile_utils)
        "least_s": _time_probes(_build_small_ops),
        "products": {dtype: [_time_product(side, count, dtype) for side, count in _SIDES.items()] for dtype in _DTYPES},
        "exp": (_EXP, _time_probes(_build_exps)),
        "reads": [(_WIDTH * size, _time_probes(partial(_build_reductions, size))) for size in _SIZES],
        "sums": [(_WIDTH * size, _time_probes(partial(_build_sums, size))) for size in _SIZES],
        "together": (_WIDTH * _LARGEST, _time_probes(partial(_build_sums, _LARGEST), cores)),
    }


def _read_info() -> dict[str, str]:
    """Return what the system says of the first core; nothing where it keeps no such file."""
    try:
        text = _INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _time_product(side: int, count: int, dtype: str) -> tuple[float, float]:
    return 2.0 * side**3, _time_probes(partial(_build_products, side, count, dtype))


# Graphs of probes of one size, as those of a model are; on constants, which are never overwritten.


def _build_products(side: int, count: int, dtype: str) -> None:
    matrix = tf.constant(1 / side, dtype, [side, side])
    for i in range(count):
        tf.raw_ops.MatMul(a=matrix, b=matrix, name=f"{_PROBE}{i}")


def _build_sums(size: int) -> None:
    left, right = (tf.constant(value, tf.float32, [size]) for value in (1.0, 2.0))
    for i in range(_SUMS_OF_LARGEST if size == _LARGEST else _SIZES[size]):
        tf.raw_ops.AddV2(x=left, y=right, name=f"{_PROBE}{i}")


def _build_reductions(size: int) -> None:
    """Build sums of rows; of large matrices there are several, since one alone may stay in the caches."""
    for i in range(_SIZES[size]):
        if i == 0 or size >= _LARGE:
            rows = tf.constant(1.0, tf.float32, [size // _COLUMNS, _COLUMNS])
        tf.raw_ops.Sum(input=rows, axis=1, name=f"{_PROBE}{i}")


def _build_exps() -> None:
    x = tf.constant(0.5, tf.float32, [_EXP])
    for i in range(_EXPS):
        tf.raw_ops.Exp(x=x, name=f"{_PROBE}{i}")


def _build_small_ops() -> None:
    """Build ops of several kinds on one element each, in turns: the code of each is not what ran just before."""
    x, one = tf.constant(0.5), tf.constant(1.0)
    for i in range(_ROUNDS * len(_KINDS)):
        getattr(tf.raw_ops, _KINDS[i % len(_KINDS)])(x=x, y=one, name=f"{_PROBE}{i}")


def _time_probes(build: Callable[[], None], threads: int = 1) -> float:
    """Return the seconds of a probe's kernel that so many threads share, of the best step.

    Of a step the lower quartile counts, which of a few probes is the best one: large kernels are disturbed most often.
    """
    with tf.Graph().as_default() as graph:
        build()
    ((own,), _) = steps.run_steps(Runnable(graph.as_graph_def(), {}, []), [(1, threads)], 1, _WARM_UP, _STEPS)
    times = (
        sorted(end - start for name, start, end, *_ in step["events"] if _NAME.fullmatch(name)) for step in own["steps"]
    )
    return float(min(found[(len(found) - 1) // 4] for found in times) / 1e9)
