"""What a cluster that XLA compiled costs: its kernels, one after the other on one stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from simplace.costs.cost_model import CostModel, KernelCost, OpCall
from simplace.costs.xla_fusion import FusedBody, FusedKernel

_UNTIL_STEADY = 3  # rounds of a loop after which each takes as long as the one before


def list_kernel_calls(kernels: Sequence[FusedKernel]) -> Iterator[OpCall]:
    """Yield the calls of all kernels once, those of loops and branches as well."""
    for kernel in kernels:
        if kernel.body is None:
            yield kernel.call
        else:
            yield from list_kernel_calls(kernel.body.asked or ())
            yield from list_kernel_calls(kernel.body.kernels)


def estimate_cluster(kernels: Sequence[FusedKernel], model: CostModel) -> KernelCost:
    """Return the cost of one execution of a cluster.

    On a GPU the host launches one kernel after the other: the stream's time starts with the first and has the waits for
    launches in it, and those of the host for the device. Errors of kernels go together, so the cluster's is the mean of
    theirs and of the waits', by time; it counts as guessed where most of its time is.
    """
    run = _ClusterRun(model, is_on_gpu=any(call.device_type != "CPU" for call in list_kernel_calls(kernels)))
    run.add(kernels, 1.0)
    parts = [(times * (cost.device_s if run.is_on_gpu else cost.host_s), cost) for times, cost in run.parts]
    busy = sum(seconds for seconds, _ in parts)
    if not busy:
        return KernelCost(0.0)
    waits = max(0.0, run.ended - busy) if run.is_on_gpu else 0.0
    guessed = waits + sum(seconds for seconds, cost in parts if cost.source == "guessed")
    error = waits * model.assume_error("executor") + sum(seconds * cost.off for seconds, cost in parts)
    longest = max(parts, key=lambda part: part[0])[1]
    return KernelCost(
        parts[0][1].host_s if run.is_on_gpu else busy, run.ended if run.is_on_gpu else 0.0, longest.shards,
        source="guessed" if guessed > (busy + waits) / 2 else "modelled", error=error / (busy + waits),
        bound="latency" if waits > busy else longest.bound,
        share=sum(seconds * cost.share for seconds, cost in parts) / (busy + waits),
        launches=round(run.launches), waits_s=waits,
    )  # fmt: skip


class _ClusterRun:
    """The kernels of a cluster as the host launches them and a stream runs them, from the start of the first."""

    def __init__(self, model: CostModel, *, is_on_gpu: bool) -> None:
        self.is_on_gpu = is_on_gpu
        self.parts: list[tuple[float, KernelCost]] = []  # how often a kernel runs, and what one execution costs
        self.launched = self.ended = self.launches = 0.0
        self._model = model

    def add(self, kernels: Sequence[FusedKernel], times: float) -> None:
        """Run some kernels, each of which runs `times` times in all."""
        for kernel in kernels:
            if kernel.body is not None:
                self._add_body(kernel.body, times)
                continue
            cost = self._model.kernel(kernel.call)
            if cost.host_s + cost.device_s > 0:
                self.launched += cost.host_s if self.parts else 0.0
                self.ended = max(self.ended, self.launched) + cost.device_s
                self.parts.append((times, cost))
                self.launches += times

    def _add_body(self, body: FusedBody, times: float) -> None:
        simulated = min(body.rounds, _UNTIL_STEADY)
        before = self.launched, self.ended
        for _ in range(simulated):
            before = self.launched, self.ended
            self._ask(body, times * body.rounds / simulated)
            self.add(body.kernels, times * body.rounds / simulated)
        more = body.rounds - simulated
        self.launched += more * (self.launched - before[0])
        self.ended += more * (self.ended - before[1])

    def _ask(self, body: FusedBody, times: float) -> None:
        """Let the host wait until the device has told whether a round runs."""
        if body.asked is None:
            return
        self.add(body.asked, times)
        if self.is_on_gpu:
            wait = self._model.copy(1, "GPU", "CPU")
            self.launched = self.ended = max(self.launched, self.ended) + wait
            self.parts.append((times, KernelCost(wait, wait, error=self._model.assume_error("copy"))))
