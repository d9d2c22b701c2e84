"""What a cluster that XLA compiled costs: its kernels, one after the other on one stream."""

from __future__ import annotations

from collections.abc import Sequence

from simplace.costs.cost_model import CostModel, KernelCost, OpCall


def estimate_cluster(kernels: Sequence[OpCall], model: CostModel) -> KernelCost:
    """Return the cost of one execution of a cluster.

    On a GPU the host launches one kernel after the other: the stream's time starts with the first and has the waits for
    launches in it. Errors of kernels go together, so the cluster's is their mean by time; it counts as guessed where
    most of its time is.
    """
    costs = [cost for cost in map(model.kernel, kernels) if cost.host_s + cost.device_s > 0]
    if not costs:
        return KernelCost(0.0)
    is_on_gpu = any(cost.device_s for cost in costs)
    times = [cost.device_s if is_on_gpu else cost.host_s for cost in costs]
    whole = sum(times)
    guessed = sum(time for time, cost in zip(times, costs, strict=True) if cost.source == "guessed")
    error = sum(time * cost.off for time, cost in zip(times, costs, strict=True)) / whole
    longest = max(zip(times, costs, strict=True), key=lambda pair: pair[0])[1]
    return KernelCost(
        costs[0].host_s if is_on_gpu else whole, _run_stream(costs) if is_on_gpu else 0.0, longest.shards,
        source="guessed" if guessed > whole / 2 else "modelled", error=error, bound=longest.bound,
        share=sum(time * cost.share for time, cost in zip(times, costs, strict=True)) / whole,
    )  # fmt: skip


def _run_stream(costs: Sequence[KernelCost]) -> float:
    """Return the seconds from the start of the first kernel, which is launched, to the end of the last."""
    launched = ended = 0.0
    for i, cost in enumerate(costs):
        launched += cost.host_s if i else 0.0
        ended = max(ended, launched) + cost.device_s
    return ended
