"""What a call costs that stays in the graph: the kernels that XLA made of it, or its ops, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

from simplace.costs.cost_model import COMPILED, Bound, CostModel, KernelCost, OpCall, Source
from simplace.costs.xla_fusion import FusedBody, FusedKernel

# When host and device are done, each as the later of two times: so long after the host is free, and the device.
_Course = tuple[tuple[float, float], tuple[float, float]]
_NOTHING: _Course = (0.0, -inf), (-inf, 0.0)


def list_kernel_calls(kernels: Sequence[FusedKernel]) -> Iterator[OpCall]:
    """Yield the calls of all kernels once, those of loops and branches as well."""
    for kernel in kernels:
        if kernel.body is None:
            yield kernel.call
        else:
            yield from list_kernel_calls(() if kernel.body.asked is None else kernel.body.asked.kernels)
            yield from list_kernel_calls(kernel.body.runs.kernels)


def estimate_cluster(kernels: Sequence[FusedKernel], model: CostModel, *, is_compiled: bool = True) -> KernelCost:
    """Return the cost of one execution of a cluster, or of the ops of a function that is not compiled.

    These run one after the other, whatever could run beside it, each with the executor's bookkeeping.

    On a GPU the host launches one kernel after the other: the stream's time starts with the first and has the waits for
    launches in it, and those of the host for the device. Errors of kernels go together, so the cluster's is the mean of
    theirs and of the waits', by time; it counts as guessed where most of its time is. It is bound by what its longest
    kernel is, and its share of that peak is what the kernels that are bound so have in its whole time.
    """
    is_on_gpu = any(call.device_type != "CPU" for call in list_kernel_calls(kernels))
    run = _ClusterRun(model, is_compiled=is_compiled, is_on_gpu=is_on_gpu)
    course = run.add(kernels, 1)
    parts = [(times * (cost.device_s if run.is_on_gpu else cost.host_s), cost) for times, cost in run.parts]
    busy = sum(seconds for seconds, _ in parts)
    if not busy:
        return KernelCost(0.0)
    first = parts[0][1].host_s  # when the device begins
    launched, ended = course
    whole = max(ended[0] - first, ended[1]) if run.is_on_gpu else 0.0
    waits = max(0.0, whole - busy)
    guessed = waits + sum(seconds for seconds, cost in parts if cost.source == "guessed")
    error = waits * model.assume_reliability("launch").error + sum(seconds * cost.off for seconds, cost in parts)
    longest = max(parts, key=lambda part: part[0])[1]
    bound: Bound | None = "latency" if waits > busy else longest.bound
    known: Source = "calibrated" if longest.source == "calibrated" else "modelled"
    later = max(0.0, max(launched) - first) if run.is_on_gpu else 0.0  # the host waits where it is told something
    return KernelCost(
        first if run.is_on_gpu else busy, whole, longest.shards,
        source="guessed" if guessed > (busy + waits) / 2 else known, error=error / (busy + waits),
        bound=bound,
        share=sum(seconds * cost.share for seconds, cost in parts if cost.bound == bound) / (busy + waits),
        launches=run.launches, later_s=later, waits_s=waits,
        least_part_s=sum(times * cost.least_part_s for times, cost in run.parts),
    )  # fmt: skip


class _ClusterRun:
    """The kernels of a cluster as the host launches them and a stream runs them."""

    def __init__(self, model: CostModel, *, is_compiled: bool, is_on_gpu: bool) -> None:
        self.is_on_gpu = is_on_gpu
        self._is_compiled = is_compiled
        self._op_s = 0.0 if is_compiled else model.overheads.op_s
        self.parts: list[tuple[int, KernelCost]] = []  # how often a kernel runs, and what one execution costs
        self.launches = 0
        self._model = model

    def add(self, kernels: Sequence[FusedKernel], times: int) -> _Course:
        """Run some kernels, each of which runs `times` times in all; return the course of one time."""
        course = _NOTHING
        for kernel in kernels:
            after = self._add_kernel(kernel.call, times) if kernel.body is None else self._add_body(kernel.body, times)
            course = _join(course, after)
        return course

    def _add_kernel(self, call: OpCall, times: int) -> _Course:
        cost = self._model.kernel(self._complete(call))
        if self._op_s:
            cost = cost._replace(host_s=cost.host_s + self._op_s)
        if not cost.host_s + cost.device_s:
            return _NOTHING
        self.parts.append((times, cost))
        if cost.device_s or not self.is_on_gpu:
            self.launches += times
        return (cost.host_s, -inf), (cost.host_s + cost.device_s, cost.device_s)

    def _complete(self, call: OpCall) -> OpCall:
        return replace(call, attrs={**call.attrs, COMPILED: True}) if self._is_compiled else call

    def _add_body(self, body: FusedBody, times: int) -> _Course:
        if not body.rounds:
            return _NOTHING
        times *= body.rounds
        asked = _NOTHING if body.asked is None else self._ask(body.asked.kernels, times)
        return _repeat(_join(asked, self.add(body.runs.kernels, times)), body.rounds)

    def _ask(self, kernels: Sequence[FusedKernel], times: int) -> _Course:
        """Add kernels, after which the host waits until the device has told whether a round runs."""
        course = self.add(kernels, times)
        if not self.is_on_gpu:
            return course
        wait = self._model.copy(1, "GPU", "CPU")
        self.parts.append((times, KernelCost(wait, wait, error=self._model.assume_reliability("copy").error)))
        return _join(course, ((wait, wait), (wait, wait)))


def _join(one: _Course, other: _Course) -> _Course:
    """Return the course of one thing and another after it."""

    def end(later: tuple[float, float]) -> tuple[float, float]:
        return max(later[0] + one[0][0], later[1] + one[1][0]), max(later[0] + one[0][1], later[1] + one[1][1])

    host, device = other
    return end(host), end(device)


def _repeat(course: _Course, times: int) -> _Course:
    """Return the course of the same so many times, of which there may be millions."""
    whole = _NOTHING
    while times:
        if times % 2:
            whole = _join(whole, course)
        course, times = _join(course, course), times // 2
    return whole
