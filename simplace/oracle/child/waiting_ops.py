"""The queues, staging areas, accumulators and barriers that a session's run puts into or takes from.

A take waits for a put. A put in a run that failed because of an emulated GPU never happens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from simplace.graph.algorithm import reverse_reachable

# By the place of the input that is the container; None for one that ops name by an attribute (kernels/stage_op.cc).
_CONTAINER_INPUT = {
    "Queue(En|De)queue(Many|UpTo)?(V2)?": 0,
    "(Resource|Sparse)?Accumulator(ApplyGradient|TakeGradient)": 0,
    "Barrier(InsertMany|TakeMany)": 0,
    "ReaderRead(UpTo)?(V2)?": 1,
    "((Ordered)?Map)?(Stage|Unstage)(NoKey|Peek)?|(Ordered)?MapPeek": None,
}
_PATTERNS = {re.compile(pattern): place for pattern, place in _CONTAINER_INPUT.items()}


def list_containers(graph: Any, run: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return the names of all containers that a run puts into or takes from, and may have to wait for."""
    fed = frozenset(run["feeds"])
    ends = [graph.get_tensor_by_name(name) for name in run["fetches"] if name not in fed]
    wanted = [*(tensor.op for tensor in ends), *map(graph.get_operation_by_name, run["targets"])]

    def list_producers(op: Any) -> list[Any]:
        return [*(tensor.op for tensor in op.inputs if tensor.name not in fed), *op.control_inputs]

    return frozenset(name for op in reverse_reachable(wanted, list_producers) for name in _find_containers(op))


def _find_containers(op: Any) -> Iterator[str]:
    places = [place for pattern, place in _PATTERNS.items() if pattern.fullmatch(op.type)]
    for place in places:
        if place is not None:
            yield _find_origin(op.inputs[place]).name
        else:
            yield f"{op.get_attr('container').decode()}/{op.get_attr('shared_name').decode() or op.name}"


def _find_origin(tensor: Any) -> Any:
    while tensor.op.type in ("Identity", "RefIdentity"):
        tensor = tensor.op.inputs[0]
    return tensor
