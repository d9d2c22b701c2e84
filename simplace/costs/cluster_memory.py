"""What a cluster that XLA compiled holds in memory between its kernels, besides what it is given and returns.

Mirrors in outline how XLA orders and assigns buffers (xla/hlo/transforms/simplifiers/hlo_memory_scheduler.cc: the best
of several orders, on a CPU that of `BFScheduler`; xla/service/buffer_assignment.cc): a result of a kernel lives until
the last kernel that reads it, a kernel that goes element by element writes into an input that ends with it, and updated
variables stay where they are.

Not modelled: workspaces of libraries, copies into other layouts on a GPU, the gaps between buffers, and that XLA
computes some results twice where they would not fit (rematerialization).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from simplace.costs.cost_model import Tensor
from simplace.costs.op_work import is_fusible
from simplace.costs.xla_fusion import OUTSIDE, ClusterOps, FusedKernel, FusedOps, Ref

_CHOSEN_AMONG = 64  # kernels that can run: a large cluster has thousands of them


class HeldTensor(NamedTuple):
    """Record of a tensor that a cluster holds, as `Tensor`; `made_by` is the name of the op whose kernel writes it."""

    dtype: str
    shape: tuple[int, ...]
    size: int
    made_by: str


def find_held(cluster: FusedOps) -> tuple[HeldTensor, ...]:
    """Return the tensors that a cluster holds at its peak.

    What it returns has memory of its own. On a CPU kernels run first come, first served, to have work for all threads;
    else, of two orders, the given one and the one that frees most at each kernel, the one that takes less counts.
    """
    kernels, returned = cluster.kernels, frozenset(cluster.results)
    inside = {id(kernel): find_held(kernel.body.runs) for kernel in kernels if kernel.body is not None}
    if any(kernel.call.device_type == "CPU" for kernel in kernels):
        return _find_peak(_order_by_breadth(kernels), returned, inside)
    orders = kernels, list(_order_by_memory(kernels, returned))
    return min((_find_peak(order, returned, inside) for order in orders), key=_sum_sizes)


def list_arguments(cluster: ClusterOps) -> dict[int, Tensor]:
    """Return the arguments of a function that is compiled whole, by their places.

    The size of a variable is that of what is read from it, or written.
    """
    given: dict[int, Tensor] = {}
    for op in cluster.ops:
        tensors = (*op.call.outputs, *op.call.inputs)
        for place, (producer, slot) in enumerate(op.producers):
            if producer == OUTSIDE:
                tensor = op.call.inputs[place]
                used = tensor if tensor.size else max(tensors, key=_size)  # of a variable only the handle is an input
                given[slot] = max(given.get(slot, used), used, key=_size)
    return {place: tensor for place, tensor in sorted(given.items()) if tensor.size}


def list_results(cluster: ClusterOps) -> Iterator[HeldTensor]:
    """Yield what a function that is compiled whole returns, but for its arguments."""
    for one, slot in cluster.results:
        if one != OUTSIDE and cluster.ops[one].call.outputs[slot].size:
            yield HeldTensor(*cluster.ops[one].call.outputs[slot], cluster.ops[one].call.name)


def _find_peak(
    kernels: Sequence[FusedKernel], returned: frozenset[Ref], inside: Mapping[int, tuple[HeldTensor, ...]]
) -> tuple[HeldTensor, ...]:
    """Return what is held at the peak; `inside` is what loops and branches hold, by the identity of their kernels."""
    left = _count_readers(kernels)
    live: dict[Ref, HeldTensor] = {}
    now, most, peak = 0, 0, tuple[HeldTensor, ...]()
    for kernel in kernels:
        made = {ref: HeldTensor(*tensor, kernel.call.name) for ref, tensor in _list_kept(kernel, returned).items()}
        ended = [ref for ref in kernel.reads if ref in live and left[ref] == 1]
        for tensor in made.values() if _updates_in_place(kernel) else ():
            into = next((ref for ref in ended if live[ref].size == tensor.size), None)
            if into is not None:
                ended.remove(into)
                now -= live.pop(into).size
        live |= made
        now += _sum_sizes(made.values())
        held = inside.get(id(kernel), ())
        if now + _sum_sizes(held) > most:
            most, peak = now + _sum_sizes(held), (*live.values(), *held)
        left.subtract(kernel.reads)
        for ref in [*ended, *(ref for ref in made if not left[ref])]:
            now -= live.pop(ref).size
    return peak


def _updates_in_place(kernel: FusedKernel) -> bool:
    """Return whether results may be where inputs were: element by element, or the variables of a loop."""
    return kernel.body is not None or (is_fusible(kernel.call.op) and not kernel.reorders)


def _order_by_breadth(kernels: Sequence[FusedKernel]) -> list[FusedKernel]:
    """Return the kernels in the order in which all that they read is there, first come, first served."""
    after, missing = _list_readers(kernels)
    order = [i for i, count in enumerate(missing) if not count]
    for i in order:  # which grows meanwhile
        for user in after[i]:
            missing[user] -= 1
            if not missing[user]:
                order.append(user)
    return [kernels[i] for i in order]


def _order_by_memory(kernels: Sequence[FusedKernel], returned: frozenset[Ref]) -> Iterator[FusedKernel]:
    """Yield the kernels, each after those that it reads, next the one that frees most, of equal ones the first."""
    sizes = {ref: tensor.size for kernel in kernels for ref, tensor in _list_kept(kernel, returned).items()}
    left, (after, missing) = _count_readers(kernels), _list_readers(kernels)
    ready = [i for i, count in enumerate(missing) if not count]

    def freed(i: int) -> tuple[int, int]:
        ended = sum(sizes.get(ref, 0) for ref in kernels[i].reads if left[ref] == 1)
        return ended - sum(sizes.get(ref, 0) for ref in kernels[i].writes), -i

    while ready:
        chosen = max(ready[-_CHOSEN_AMONG:], key=freed)
        ready.remove(chosen)
        left.subtract(kernels[chosen].reads)
        for i in after[chosen]:
            missing[i] -= 1
            if not missing[i]:
                ready.append(i)
        yield kernels[chosen]


def _list_readers(kernels: Sequence[FusedKernel]) -> tuple[list[list[int]], list[int]]:
    """Return, by kernel, the numbers of those that read what it writes, and how many kernels it waits for itself."""
    made_by = {ref: i for i, kernel in enumerate(kernels) for ref in kernel.writes}
    needs = [{made_by[ref] for ref in kernel.reads if ref in made_by} for kernel in kernels]
    after: list[list[int]] = [[] for _ in kernels]
    for i, needed in enumerate(needs):
        for before in needed:
            after[before].append(i)
    return after, [len(needed) for needed in needs]


def _count_readers(kernels: Sequence[FusedKernel]) -> Counter[Ref]:
    return Counter(ref for kernel in kernels for ref in kernel.reads)


def _list_kept(kernel: FusedKernel, returned: frozenset[Ref]) -> dict[Ref, Tensor]:
    """Return what a kernel writes into memory that the cluster holds."""
    written = zip(kernel.writes, kernel.call.outputs, strict=True)
    return {ref: tensor for ref, tensor in written if ref not in returned and tensor.size}


def _size(tensor: Tensor) -> int:
    return tensor.size


def _sum_sizes(tensors: Iterable[Tensor | HeldTensor]) -> int:
    return sum(tensor.size for tensor in tensors)
