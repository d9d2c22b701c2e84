"""The queues, staging areas, accumulators and barriers that a session's run puts into or takes from.

A take waits for a put. A put in a run that failed because of an emulated GPU never happens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from simplace.graph.algorithm import reverse_reachable
from simplace.oracle.child.called_functions import list_called
from simplace.oracle.child.kernel_types import calls_functions, find_op_def

# By the place of the input that is the container; None for one that ops name by an attribute (kernels/stage_op.cc).
_CONTAINER_INPUT = {
    "Queue(En|De)queue(Many|UpTo)?(V2)?": 0,
    "(Resource|Sparse)?Accumulator(ApplyGradient|TakeGradient)": 0,
    "Barrier(InsertMany|TakeMany)": 0,
    "ReaderRead(UpTo)?(V2)?": 1,
    "((Ordered)?Map)?(Stage|Unstage)(NoKey|Peek)?|(Ordered)?MapPeek": None,
}
_PATTERNS = {re.compile(pattern): place for pattern, place in _CONTAINER_INPUT.items()}
# Of ops/data_flow_ops.cc, what adds to a container from which other ops wait to take.
_PUT = re.compile(
    "QueueEnqueue(Many)?(V2)?|((Ordered)?Map)?Stage|(Resource|Sparse)?AccumulatorApplyGradient|BarrierInsertMany"
)
# All that works on such containers: takes wait for puts or the end, puts for room, and sizes tell when not to wait.
_USE = re.compile(
    r"Queue\w+|((Ordered)?Map)?(Stage|Unstage)\w*|(Ordered)?Map(Peek|Size|IncompleteSize|Clear)"
    r"|(Resource|Sparse)?Accumulator\w+|Barrier\w+"
)


def has_put(types: Iterable[str]) -> bool:
    """Return whether an op of these types adds to what others wait to take.

    >>> has_put(["QueueEnqueueManyV2"]), has_put(["OrderedMapStage"]), has_put(["QueueDequeueV2", "StageSize"])
    (True, True, False)
    """
    return any(map(_PUT.fullmatch, types))


def uses_container(types: Iterable[str]) -> bool:
    """Return whether an op of these types uses a queue, a staging area, an accumulator or a barrier.

    >>> uses_container(["Stage"]), uses_container(["QueueSizeV2"]), uses_container(["FIFOQueueV2", "AccumulateNV2"])
    (True, True, False)
    """
    return any(map(_USE.fullmatch, types))


def list_containers(graph: Any, run: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return the names of all containers that a run puts into or takes from, and may have to wait for."""
    return frozenset(name for op in list_run_ops(graph, run) for name in _find_containers(op))


def list_run_ops(graph: Any, run: Mapping[str, Sequence[str]]) -> set[Any]:
    """List the ops that a run of a graph needs."""
    fed = frozenset(run["feeds"])
    ends = [graph.get_tensor_by_name(name) for name in run["fetches"] if name not in fed]
    wanted = [*(tensor.op for tensor in ends), *map(graph.get_operation_by_name, run["targets"])]

    def list_producers(op: Any) -> list[Any]:
        return [*(tensor.op for tensor in op.inputs if tensor.name not in fed), *op.control_inputs]

    return reverse_reachable(wanted, list_producers)


def list_called_types(graph: Any, ops: Iterable[Any]) -> frozenset[str]:
    """List the types of the ops in the functions that ops of a graph call, at any depth."""
    callers = [op.node_def for op in ops if find_op_def(op.type) is None or calls_functions(op.type)]
    if not callers:
        return frozenset()
    bodies = {each.signature.name: each.node_def for each in graph.as_graph_def().library.function}
    exists = bodies.__contains__
    reached = reverse_reachable(list_called(callers, exists), lambda name: list_called(bodies[name], exists))
    return frozenset(node.op for name in reached for node in bodies[name])


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
