"""Measure how long the cost model takes to estimate one op, by kind of op, each of a shape that it has not seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from simplace.costs.cost_model import OpCall, Tensor
from simplace.costs.modelled_costs import make_modelled_costs
from simplace.costs.op_work import make_tensor

_SIZES = range(64, 2064, 5)
_TURNS = 60  # the best of these counts for each op: a machine that others share is undisturbed for moments only
_GPUS = ("t4", "a100")


def tabulate_speed() -> Iterator[str]:
    """Yield the microseconds that an op takes, the mean over some shapes of the best of some turns each."""
    yield "\nHow long it takes to estimate an op of a new shape, in microseconds of this processor; the bar was 20.\n"
    yield "| op | " + " | ".join(_GPUS) + " |"
    yield "|---|" + "---|" * len(_GPUS)
    for name, make in _CALLS.items():
        calls = [make(size) for size in _SIZES]
        yield f"| {name} | " + " | ".join(f"{_time_calls(gpu, calls):.1f}" for gpu in _GPUS) + " |"


def _time_calls(gpu: str, calls: list[OpCall]) -> float:
    """Return the microseconds of one of some calls; each turn begins with a model that has seen no shape."""
    best = [float("inf")] * len(calls)
    for _ in range(_TURNS):
        model = make_modelled_costs(gpu)
        for i, call in enumerate(calls):
            began = time.perf_counter()
            model.kernel(call)
            best[i] = min(best[i], time.perf_counter() - began)
    return 1e6 * sum(best) / len(best)


def _call(op: str, inputs: list[tuple[int, ...]], output: tuple[int, ...], dtype: str = "float32") -> OpCall:
    width = 2 if dtype == "float16" else 4
    tensors: list[Tensor] = [make_tensor(dtype, shape, width) for shape in (*inputs, output)]
    return OpCall("node", op, "GPU", {}, tuple(tensors[:-1]), tuple(tensors[-1:]))


_CALLS: Mapping[str, Callable[[int], OpCall]] = {
    "MatMul": lambda n: _call("MatMul", [(n, 768), (768, n)], (n, n)),
    "MatMul, FP16": lambda n: _call("MatMul", [(n, 768), (768, n)], (n, n), "float16"),
    "BatchMatMulV2": lambda n: _call("BatchMatMulV2", [(8, n, 64), (8, 64, n)], (8, n, n)),
    "Conv2D": lambda n: _call("Conv2D", [(8, 28, 28, n), (3, 3, n, 64)], (8, 28, 28, 64)),
    "Conv2DBackpropInput": lambda n: _call(
        "Conv2DBackpropInput", [(4,), (3, 3, n, 64), (8, 28, 28, 64)], (8, 28, 28, n)
    ),
    "Conv2DBackpropFilter": lambda n: _call(
        "Conv2DBackpropFilter", [(8, 28, 28, n), (4,), (8, 28, 28, 64)], (3, 3, n, 64)
    ),
    "Softmax": lambda n: _call("Softmax", [(512, n)], (512, n)),
    "AddV2": lambda n: _call("AddV2", [(512, n), (512, n)], (512, n)),
    "Sum": lambda n: _call("Sum", [(512, n), (1,)], (512,)),
}
