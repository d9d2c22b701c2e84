"""How often a loop inside of a compiled cluster runs, read from the ops of its condition and its body.

XLA itself knows it where the condition is one comparison of a counter with a constant (xla/hlo/analysis/
while_loop_analysis.cc). TensorFlow's loops with `maximum_iterations`, and those over a range, compare two counters: XLA
merges these, but of a condition that joins comparisons it mostly does not know the trips, and asks before each round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from simplace.costs.xla_fusion import OUTSIDE, ClusterOps, FusibleOp, Ref
from simplace.graph.node_def import FunctionDef, TensorInfo
from simplace.graph.op_kinds import IDENTITIES, is_constant

_ADDITIONS = frozenset(("Add", "AddV2"))
_COMPARISONS = {"Less": (1, 0), "LessEqual": (1, 1), "Greater": (-1, 0), "GreaterEqual": (-1, 1)}  # direction, closed


@dataclass(frozen=True, slots=True)
class LoopCount:
    """Record of what the ops of a loop tell: the trips, None where they do not, and whether XLA knows them.

    `finals` are the integers that the loop returns, by slot, where they are known. `merged` are the counters that start
    and run like an earlier one: XLA keeps that alone (xla/service/while_loop_simplifier.cc).
    """

    trips: int | None
    is_known: bool
    finals: Mapping[int, int]
    merged: frozenset[int]


def read_integer(ops: Sequence[FusibleOp], ref: Ref, known: Mapping[Ref, int]) -> int | None:
    """Return the integer that a tensor is, None where neither `known` nor a constant tells."""
    producer, slot = _find_renamed(ops, ref)
    if producer == OUTSIDE or (producer, slot) in known:
        return known.get((producer, slot))
    value = ops[producer].call.attrs.get("value") if is_constant(ops[producer].call.op) else None
    return value.value if isinstance(value, TensorInfo) else None


def find_invariants(body: FunctionDef) -> frozenset[int]:
    """Return the arguments that a loop's body, which returns as many, returns as they came."""
    nodes = {node.name: node for node in body.nodes}
    found = set()
    for i, (taken, returned) in enumerate(zip(body.inputs, body.outputs, strict=True)):
        name, seen = body.ret.get(returned.name, "").partition(":")[0], set[str]()
        while name in nodes and nodes[name].op in IDENTITIES and nodes[name].inputs and name not in seen:
            seen.add(name)
            name = nodes[name].inputs[0].partition(":")[0]
        if name == taken.name:
            found.add(i)
    return frozenset(found)


def count_trips(
    condition: ClusterOps, body: ClusterOps, given: Mapping[int, int], fixed: Mapping[int, int], trips: int | None
) -> LoopCount:
    """Read how often a loop runs, or take it for `trips`, where these are given.

    `given` are the integers that it starts with, by slot, `fixed` those of them that stay as they are.
    """
    steps = {i: step for i in range(len(body.results)) if (step := _find_step(body, i))}
    bounds = [_find_bound(condition.ops, ref, given, steps, fixed) for ref in _list_joined(condition)]
    known = [bound for bound in bounds if bound is not None]
    trips = min(known, default=None) if trips is None else trips
    counted = {} if trips is None else {i: given[i] + step * trips for i, step in steps.items() if i in given}
    kept = {(given[i], step): i for i, step in sorted(steps.items(), reverse=True) if i in given}
    merged = frozenset(i for i, step in steps.items() if i in given and kept[given[i], step] != i)
    return LoopCount(trips, len(bounds) == len(known) == 1, {**fixed, **counted}, merged)


def _list_joined(condition: ClusterOps) -> Iterator[Ref]:
    """Yield the tensors that all have to be true for another round."""
    waiting, seen = list(condition.results), set[Ref]()
    for ref in waiting:  # which grows meanwhile
        found = _find_renamed(condition.ops, ref)
        if found in seen:
            continue
        seen.add(found)
        if found[0] != OUTSIDE and condition.ops[found[0]].call.op == "LogicalAnd":
            waiting += condition.ops[found[0]].producers
        else:
            yield found


def _find_bound(
    ops: Sequence[FusibleOp], ref: Ref, given: Mapping[int, int], steps: Mapping[int, int], fixed: Mapping[int, int]
) -> int | None:
    """Return after how many rounds a comparison ends a loop, None for what compares no counter with a known integer."""
    producer, _ = ref
    op = ops[producer].call.op if producer != OUTSIDE else ""
    if op not in _COMPARISONS:
        return None
    direction, is_closed = _COMPARISONS[op]
    left, right = ops[producer].producers
    place, counter = _find_renamed(ops, left)
    limit = read_integer(ops, right, {(OUTSIDE, i): value for i, value in fixed.items()})
    start, step = given.get(counter), direction * steps.get(counter, 0)
    if place != OUTSIDE or start is None or limit is None or step <= 0:
        return None
    return max(0, -(-(direction * (limit - start) + is_closed) // step))


def _find_step(body: ClusterOps, i: int) -> int:
    """Return the constant that a round adds to a value, 0 where it does something else."""
    producer = _find_renamed(body.ops, body.results[i])[0]
    op = body.ops[producer].call.op if producer != OUTSIDE else ""
    if op not in _ADDITIONS and op != "Sub":
        return 0
    left, right = body.ops[producer].producers
    for counter, added in ((left, right), (right, left)) if op != "Sub" else ((left, right),):
        if _find_renamed(body.ops, counter) == (OUTSIDE, i):
            step = read_integer(body.ops, added, {}) or 0
            return -step if op == "Sub" else step
    return 0


def _find_renamed(ops: Sequence[FusibleOp], ref: Ref) -> Ref:
    """Return what a tensor is, or is another name of."""
    while ref[0] != OUTSIDE and ops[ref[0]].call.op in IDENTITIES and ops[ref[0]].producers:
        ref = ops[ref[0]].producers[0]
    return ref
