"""Which ops of a compiled cluster become one kernel, as XLA fuses them on a GPU.

Mirrors in outline `GpuInstructionFusion` (xla/service/gpu/transforms/instruction_fusion.cc) and multi-output fusion:

- Elementwise ops, broadcasts, casts, transposes, slices and concatenations are fused into the op that uses them. What
  flows inside a fusion never goes through memory.
- A reduction takes what it reads into its kernel; it ends a fusion, for its result needs all of its input.
- An op that several kernels use is computed in each of them if that is cheap and moves no more bytes, and kept in
  memory if it is expensive (exponentials, logarithms and the like, `HloInstruction::IsExpensive`).
- A softmax is one kernel, and takes in the elementwise ops that it reads (softmax_rewriter_triton.cc).
- Products, convolutions and whatever else a library does are kernels of their own.

- Loops and branches have kernels of their own. The host launches those of each round. Unless XLA knows how often a loop
  runs, and before a branch, it waits for the device to tell (xla/backends/gpu/runtime/while_thunk.cc,
  conditional_thunk.cc; xla/hlo/transforms/while_loop_trip_count_annotator.cc).

Not modelled: what XLA folds into a product's own kernel (bias, activation), other normalisations as one kernel, limits
on the size of a fusion, and when a fusion is so slow that XLA leaves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from simplace.costs.cost_model import OpCall, Tensor
from simplace.costs.op_work import (
    SOFTMAX,
    count_extra_bytes,
    find_read,
    is_expensive,
    is_free,
    is_fusible,
    is_reduction,
)

FUSION = "XlaFusion"  # the op of a kernel that several were fused into
FUSED = "_XlaFused"  # the attribute of a softmax that is one kernel
OUTSIDE = -1  # the producer of what a cluster is given
_REORDERING = frozenset("Transpose Reverse ReverseV2 ReverseSequence Roll Gather GatherV2 GatherNd".split())


Ref = tuple[int, int]  # an op of a cluster (by number) and the slot of an output


@dataclass(frozen=True, slots=True)
class FusibleOp:
    """Record of an op of a cluster: `producers` are the ops (by number) of its inputs, with the slot of each.

    `OUTSIDE` is the producer of arguments; their slot is the number of the argument. `body` is what a loop or a branch
    runs, with its inputs as arguments.
    """

    call: OpCall
    producers: tuple[Ref, ...]
    body: ClusterBody | None = None


@dataclass(frozen=True, slots=True)
class ClusterOps:
    """Record of ops in topological order, and of the outputs that they return."""

    ops: tuple[FusibleOp, ...]
    results: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class ClusterBody:
    """Record of what a loop or a branch inside of a cluster runs, `rounds` times.

    `asked` is what tells the host, before each round, whether to run it; None where XLA knows how often.
    """

    runs: ClusterOps
    rounds: int
    asked: ClusterOps | None


@dataclass(frozen=True, slots=True)
class FusedKernel:
    """Record of a kernel of a cluster: which outputs of ops it reads from memory, and writes there.

    `writes` are the outputs of `call`, in its order. One that `reorders` reads elements elsewhere than it writes them.
    `body` has the kernels of a loop or a branch: then `call` is none itself.
    """

    call: OpCall
    reads: tuple[Ref, ...]
    writes: tuple[Ref, ...]
    reorders: bool = False
    body: FusedBody | None = None


@dataclass(frozen=True, slots=True)
class FusedOps:
    """Record of kernels in an order in which they can run, and of what they return, which is no view."""

    kernels: tuple[FusedKernel, ...]
    results: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class FusedBody:
    """Record of what a loop or a branch inside of a cluster runs, as a `ClusterBody` has it."""

    runs: FusedOps
    rounds: int
    asked: FusedOps | None


def fuse_ops(cluster: ClusterOps) -> FusedOps:
    """Return the kernels of a cluster in the order of their last ops.

    A kernel of one op is that op's own call; one of several is a call of `FUSION` (of a softmax that ends it). Its
    inputs are what it reads from memory, its outputs what it writes there, that of the last op first.
    """
    ops = cluster.ops
    users = _list_users(ops)
    results = tuple(_find_source(ops, ref) for ref in cluster.results)
    returned = {ref[0] for ref in results}
    roots: list[set[int]] = [set() for _ in ops]  # the kernels, by the number of their last op, that an op is part of
    takes_in = [False] * len(ops)  # whether an op's kernel computes what it reads; a view's: whether those of its users
    for i in reversed(range(len(ops))):
        op = ops[i].call.op
        if is_free(op):
            roots[i] = set().union(*(roots[user] for user in users[i]))
            takes_in[i] = bool(users[i]) and all(takes_in[user] for user in users[i])
        else:
            takes_in[i] = is_fusible(op) or op in SOFTMAX
            wanted = [user for user in users[i] if not is_free(ops[user].call.op) or users[user]]
            kernels = [roots[user] for user in wanted] if all(takes_in[user] for user in wanted) else []
            roots[i] = _choose_kernels(i, ops[i].call, kernels, i in returned)
    members: dict[int, list[int]] = {}
    for i, own in enumerate(roots):
        if not is_free(ops[i].call.op):
            for root in own:
                members.setdefault(root, []).append(i)
    return FusedOps(tuple(_join_members(ops, own, returned) for _, own in sorted(members.items())), results)


def keep_ops(ops: ClusterOps) -> FusedOps:
    """Return the ops of a function that TensorFlow runs one by one, each as a kernel of its own."""
    kernels = tuple(
        FusedKernel(one.call, one.producers, tuple((i, slot) for slot in range(len(one.call.outputs))),
                    body=None if one.body is None else _keep_body(one.body))
        for i, one in enumerate(ops.ops)
    )  # fmt: skip
    return FusedOps(kernels, ops.results)


def _keep_body(body: ClusterBody) -> FusedBody:
    return FusedBody(keep_ops(body.runs), body.rounds, None if body.asked is None else keep_ops(body.asked))


def _list_users(ops: Sequence[FusibleOp]) -> list[list[int]]:
    users: list[list[int]] = [[] for _ in ops]
    for i, op in enumerate(ops):
        for producer in {producer for producer, _ in op.producers if producer != OUTSIDE}:
            users[producer].append(i)
    return users


def _choose_kernels(i: int, call: OpCall, wanted: Sequence[set[int]], is_returned: bool) -> set[int]:
    """Return the kernels that compute an op: those of all that use it (none, where one cannot), or one of its own."""
    kernels = set().union(*wanted)
    if not kernels or not is_fusible(call.op) or is_reduction(call.op):
        return {i}
    if len(kernels) == 1:
        return kernels
    read, made = (sum(tensor.size for tensor in tensors) for tensors in (call.inputs, call.outputs))
    spares = len(kernels) * read <= read + made * (1 + len(kernels))
    return kernels if spares and not is_expensive(call.op) and not is_returned else {i}


def _join_members(ops: Sequence[FusibleOp], own: Sequence[int], returned: set[int]) -> FusedKernel:
    """Return a kernel; its members are in topological order."""
    inside, root, last = set(own), own[-1], ops[own[-1]].call
    read: dict[Ref, Tensor] = {}
    for i in own:
        for place, source in enumerate(ops[i].producers):
            kept = _find_source(ops, source)
            if kept[0] not in inside:
                part = find_read(ops[i].call, place)
                read[kept] = max(read.get(kept, part), part, key=lambda tensor: tensor.size)
    writers = [root, *(i for i in own[:-1] if i in returned)]
    writes = tuple((i, slot) for i in writers for slot in range(len(ops[i].call.outputs)))
    if len(own) == 1:
        alone = replace(last, attrs={**last.attrs, FUSED: True}) if last.op in SOFTMAX else last
        return FusedKernel(alone, tuple(read), writes, last.op in _REORDERING, _fuse_body(ops[root].body))
    written = tuple(ops[i].call.outputs[slot] for i, slot in writes)
    extra = sum(count_extra_bytes(ops[i].call) for i in own)
    more = (Tensor("uint8", (extra,), extra),) if extra else ()
    op, attrs = (last.op, {FUSED: True}) if last.op in SOFTMAX else (FUSION, {})
    call = OpCall(last.name, op, last.device_type, attrs, (*read.values(), *more), written)
    return FusedKernel(call, tuple(read), writes, any(ops[i].call.op in _REORDERING for i in own))


def _fuse_body(body: ClusterBody | None) -> FusedBody | None:
    if body is None:
        return None
    return FusedBody(fuse_ops(body.runs), body.rounds, None if body.asked is None else fuse_ops(body.asked))


def _find_source(ops: Sequence[FusibleOp], source: Ref) -> Ref:
    """Return what a tensor is a view of: it goes back through ops that touch no element."""
    while source[0] != OUTSIDE and is_free(ops[source[0]].call.op) and ops[source[0]].producers:
        source = ops[source[0]].producers[0]
    return source
