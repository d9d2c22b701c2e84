"""Why a node is where it is, as data: one record per rule, made from a placement on request.

A reason holds nodes (by id) and devices (full names), and declares which node it follows; `explain.sentences` has a
sentence for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Literal

from simplace.devices.device_name import DeviceName
from simplace.explain.colocation_path import shortest_path
from simplace.graph.op_kinds import is_arg, is_identity, is_retval
from simplace.kernels.kernel_lookup import NearestDtype, nearest_dtype
from simplace.placement.candidates import Candidates, Fallback
from simplace.placement.colocation_graph import ColocationEdge, Notice
from simplace.placement.group_requests import Asked
from simplace.placement.placement import Decision, Placement
from simplace.placement.rules import Rule
from simplace.placement.xla_compiler import Cluster, ClusterOp

Via = Literal["", "colocation", "propagation"]
_KINDS: dict[str, type[Reason]] = {}  # in the order of their definition


@dataclass(frozen=True, slots=True)
class Reason:
    """Record of a node, the device it got, and (per subclass) the cause.

    `via` is how the node that it `follows` affects it, `takes_over` whether the device itself comes from that
    node, so that the reason for it is that node's. `weight` is how constrained the decision was.
    """

    rule: ClassVar[str] = ""
    via: ClassVar[Via] = ""
    takes_over: ClassVar[bool] = False
    weight: ClassVar[int] = 1
    node: int
    device: str

    def __init_subclass__(cls) -> None:
        _KINDS[cls.__name__] = cls  # by name, since a class with slots is made twice

    @property
    def follows(self) -> int:
        """Return the node whose device or request decided this one; -1 for none."""
        return -1


@dataclass(frozen=True, slots=True)
class Argument(Reason):
    """An argument stays where the caller's tensor is; `pinned` says why that is the host ("int32", "string", or "")."""

    rule: ClassVar[str] = "argument"
    pinned: str


@dataclass(frozen=True, slots=True)
class FunctionResult(Reason):
    """A result goes to the device that its producer requested or was assigned; identities without either are
    nothing.
    """

    rule: ClassVar[str] = "result"
    via: ClassVar[Via] = "propagation"
    producer: int

    @property
    def follows(self) -> int:
        """Return the producer."""
        return self.producer


@dataclass(frozen=True, slots=True)
class LoopVariable(Reason):
    """A loop's node for a variable that was assigned before placement keeps the variable's device."""

    rule: ClassVar[str] = "loop_variable"
    via: ClassVar[Via] = "propagation"
    takes_over: ClassVar[bool] = True
    source: int

    @property
    def follows(self) -> int:
        """Return the initial value."""
        return self.source


@dataclass(frozen=True, slots=True)
class KeptFromEarlierRun(Reason):
    """A stateful node stays where an earlier run of the session put it."""

    rule: ClassVar[str] = "kept_from_earlier_run"


@dataclass(frozen=True, slots=True)
class Requested(Reason):
    """The node requested this device and got it; `request` is as the program wrote it."""

    rule: ClassVar[str] = "requested"
    weight: ClassVar[int] = 2
    request: str


@dataclass(frozen=True, slots=True)
class SoftFallback(Reason):
    """No device satisfies the request of the node or its group, so soft placement chose another.

    `request` is what `leader` requested, the node itself or a member of its group (-1: all of them together).
    `exists` says whether a device of that name exists (then a kernel is missing), `kernels_missing_at` is the member
    of the group that lacks a kernel for the requested type (-1: none does), `moved_resource` whether a variable had to
    move.
    """

    rule: ClassVar[str] = "soft_fallback"
    via: ClassVar[Via] = "colocation"
    weight: ClassVar[int] = 3
    request: str
    leader: int
    exists: bool
    kernels_missing_at: int
    moved_resource: bool

    @property
    def follows(self) -> int:
        """Return the node that requested it."""
        return self.leader


@dataclass(frozen=True, slots=True)
class Colocated(Reason):
    """The node's group decides: `leader` is the member that decides, `path` the colocation edges that lead to it.

    `how` says what the leader brings: "placed" (it was placed first), "request", "resource" (a variable's device),
    "kernel" (it has a kernel only there), "host" (it has host-only contents) or "call" (a called function
    demands it, of the node itself).
    """

    rule: ClassVar[str] = "colocated"
    via: ClassVar[Via] = "colocation"
    takes_over: ClassVar[bool] = True
    leader: int
    how: str
    path: tuple[ColocationEdge, ...]

    @property
    def follows(self) -> int:
        """Return the member that decides the device."""
        return self.leader


@dataclass(frozen=True, slots=True)
class Overruled(Reason):
    """The node requested a device, but its group's devices merged to another.

    `merged` is what was left of the requests when the group was first placed ("" for nothing), `leader` is a member
    whose request contradicts the node's (-1: none found), `how` says why that one counts: "resource", "placed" or
    "request". `notice` is what TensorFlow logged.
    """

    rule: ClassVar[str] = "overruled"
    via: ClassVar[Via] = "colocation"
    weight: ClassVar[int] = 3
    request: str
    merged: str
    leader: int
    how: str
    notice: Notice | None

    @property
    def follows(self) -> int:
        """Return the member that contradicts it."""
        return self.leader


@dataclass(frozen=True, slots=True)
class OnlyKernel(Reason):
    """No type of device was requested; the preferred device has no kernel for the node's types."""

    rule: ClassVar[str] = "only_kernel"
    weight: ClassVar[int] = 3
    preferred: str


@dataclass(frozen=True, slots=True)
class HeldOnHost(Reason):
    """A variant with host-only contents keeps the node on the CPU."""

    rule: ClassVar[str] = "held_on_host"


@dataclass(frozen=True, slots=True)
class DefaultDevice(Reason):
    """No device was requested, so the device of the function's call is used."""

    rule: ClassVar[str] = "default_device"


@dataclass(frozen=True, slots=True)
class Preferred(Reason):
    """No device was requested, so the highest-priority candidate is used."""

    rule: ClassVar[str] = "preferred_device"
    weight: ClassVar[int] = 0
    over: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MetadataFollowsInput(Reason):
    """A Shape, Size or Rank stays with the tensor it describes."""

    rule: ClassVar[str] = "metadata_follows_input"
    via: ClassVar[Via] = "propagation"
    takes_over: ClassVar[bool] = True
    input: int

    @property
    def follows(self) -> int:
        """Return the input."""
        return self.input


@dataclass(frozen=True, slots=True)
class IdentityFollowsInput(Reason):
    """An Identity with one input and one consumer stays with its input."""

    rule: ClassVar[str] = "identity_follows_input"
    via: ClassVar[Via] = "propagation"
    takes_over: ClassVar[bool] = True
    input: int

    @property
    def follows(self) -> int:
        """Return the input."""
        return self.input


@dataclass(frozen=True, slots=True)
class GeneratorFollowsConsumers(Reason):
    """A node without inputs goes where all its consumers are."""

    rule: ClassVar[str] = "generator_follows_consumers"
    via: ClassVar[Via] = "propagation"
    takes_over: ClassVar[bool] = True
    consumers: tuple[int, ...]

    @property
    def follows(self) -> int:
        """Return the first consumer."""
        return self.consumers[0]


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Record of which device types have a kernel for a node, and the nearest data type where one has none."""

    node: int
    types: tuple[str, ...]
    lacking: tuple[tuple[str, NearestDtype | None], ...]


@dataclass(frozen=True, slots=True)
class CompiledByXla:
    """Record of why an op that no placer sees is where it is: XLA compiles it with `others` of one call.

    `node` is the id of the call's node, `name` and `op` are those of the op, which XLA has a kernel for or not.
    """

    rule: ClassVar[str] = "compiled_by_xla"
    node: int
    device: str
    name: str
    op: str
    others: int
    is_supported: bool


def make_compiled_reason(cluster: Cluster, op: ClusterOp) -> CompiledByXla:
    """Return the reason for the device of an op of a cluster."""
    return CompiledByXla(cluster.node, cluster.device, op.name, op.op, len(cluster.ops) - 1, op.is_supported)


ALL_REASONS: tuple[type[Reason], ...] = tuple(_KINDS.values())


def find_reason(placement: Placement, node: int) -> Reason:
    """Return the reason for a placed node's device."""
    decision = placement.decisions[node]
    match decision.rule:
        case Rule.ASSIGNED:
            return _explain_assigned(placement, node, decision.device)
        case Rule.METADATA if _was_free(decision):
            return MetadataFollowsInput(node, decision.device, decision.follows)
        case Rule.IDENTITY if _was_free(decision):
            return IdentityFollowsInput(node, decision.device, decision.follows)
        case Rule.GENERATOR if _was_free(decision):
            targets = {placement.graph.edge_dst[edge] for edge in placement.graph.out_edges[node]}
            return GeneratorFollowsConsumers(node, decision.device, tuple(sorted(targets)))
    assert decision.candidates is not None, "only nodes assigned before have no candidates"
    return _best_candidate(placement, node, decision, decision.candidates)


def follow_reasons(
    placement: Placement, first: Reason, find: Callable[[int], Reason] | None = None
) -> Iterator[Reason]:
    """Yield a reason, and those of the nodes from which the device was taken over, up to one that decided by itself.

    `find` returns the reason of a node for one who asks for many; None: as `find_reason` does.
    """
    seen: set[int] = set()
    at: Reason | None = first
    while at is not None:
        yield at
        seen.add(at.node)
        source = at.follows if at.takes_over else -1
        is_new = source in placement.decisions and source not in seen
        at = (find_reason(placement, source) if find is None else find(source)) if is_new else None


def kernel_facts(placement: Placement, node: int) -> KernelFacts:
    """Return which device types of the set have a kernel for a node."""
    graph, support = placement.graph, placement.groups.support
    have = tuple(kind for kind, _ in placement.groups.own_types[node])
    lacking = tuple(
        (kind, nearest_dtype(support.table, graph.ops[node], kind, graph.attrs[node]))
        for kind in support.device_types
        if kind not in have
    )
    return KernelFacts(node, have, lacking)


def list_group_members(placement: Placement, node: int) -> list[int]:
    """Return the members of a node's colocation group by id."""
    return placement.members[placement.groups.root(node)]


def find_colocation_path(placement: Placement, start: int, goal: int) -> tuple[ColocationEdge, ...]:
    """Return the shortest path of colocation edges between two members of one group."""
    return shortest_path(lambda node: placement.joins_at.get(node, ()), start, goal)


def _was_free(decision: Decision) -> bool:
    """Return whether following a neighbour decided anything that a request or a group had not decided already."""
    return decision.candidates is not None and len(decision.candidates.devices) > 1


def _explain_assigned(placement: Placement, node: int, device: str) -> Reason:
    graph = placement.graph
    op = graph.ops[node]
    if is_arg(op):
        on_host = placement.devices.by_name[device].type == "CPU"
        pinned = {3: "int32", 7: "string"}.get(graph.out_types[node][0], "") if on_host else ""
        return Argument(node, device, pinned)
    sources = [graph.edge_src[edge] for edge in graph.data_in_edges(node)]
    if is_retval(op):
        return FunctionResult(node, device, _find_producer(placement, sources[0]))
    if graph.origins[node].made_by and sources:
        return LoopVariable(node, device, sources[0])
    return KeptFromEarlierRun(node, device)


def _find_producer(placement: Placement, node: int) -> int:
    graph = placement.graph
    while is_identity(graph.ops[node]) and not (graph.assigned[node] or graph.requested[node]):
        node = graph.edge_src[graph.data_in_edges(node)[0]]
    return node


def _best_candidate(placement: Placement, node: int, decision: Decision, candidates: Candidates) -> Reason:
    graph, group, device = placement.graph, candidates.constraints, decision.device
    request = graph.requested[node]
    own = DeviceName.parse(request) or DeviceName()
    got = placement.devices.by_name[device].spec
    if candidates.fallback is not Fallback.NONE:
        return _soft_fallback(placement, node, device, candidates)
    lacked = _find_lacked(placement, node, device)
    if own.is_set and own.matches(got):  # of a task alone, as tf.numpy_function requests its own
        return OnlyKernel(node, device, lacked) if own.type is None and lacked else Requested(node, device, request)
    if own.is_set:
        return _explain_overruled(placement, node, device, own)
    if group.requested.is_set and group.requested.matches(got):
        return _explain_colocated(placement, node, device)
    if placement.groups.host_only and node in placement.groups.host_only:
        return HeldOnHost(node, device)
    if placement.default is not None and device == placement.default.name:
        return DefaultDevice(node, device)
    if lacked:
        return OnlyKernel(node, device, lacked)
    if placement.default is not None:
        return _colocated_by_kernel(placement, node, device, placement.default.type)
    best = placement.devices.types[0]
    if got.type != best and best not in dict(group.types):
        return _colocated_by_kernel(placement, node, device, best)
    return Preferred(node, device, tuple(d.name for d in candidates.devices[1:]))


def _find_lacked(placement: Placement, node: int, device: str) -> str:
    """Return the default device, or else the best type of device, where a node has no kernel for it, "" for none."""
    own_types, default = {kind for kind, _ in placement.groups.own_types[node]}, placement.default
    if default is not None:
        return "" if device == default.name or default.type in own_types else default.name
    best = placement.devices.types[0]
    return "" if placement.devices.by_name[device].type == best or best in own_types else best


def _soft_fallback(placement: Placement, node: int, device: str, candidates: Candidates) -> Reason:
    wanted = candidates.constraints.requested
    exists = bool(placement.devices.matching(wanted))
    missing = -1
    if exists and wanted.type is not None:
        own_types, members = placement.groups.own_types, list_group_members(placement, node)
        missing = next((i for i in chain((node,), members) if wanted.type not in dict(own_types[i])), -1)
    moved = candidates.fallback is Fallback.RESOURCE_DROPPED
    requested = placement.graph.requested
    askers = (
        i for i in list_group_members(placement, node) if requested[i] and DeviceName.parse(requested[i]) == wanted
    )
    leader = node if requested[node] else next(askers, -1)
    request = requested[leader] if leader >= 0 else str(wanted)
    return SoftFallback(node, device, request, leader, exists, missing, moved)


def _explain_overruled(placement: Placement, node: int, device: str, own: DeviceName) -> Overruled:
    """Return the reason, with the member whose request takes precedence: an assigned one, a resource, any other."""
    requested, group = placement.graph.requested[node], placement.requests.get(placement.groups.root(node))
    first = placement.decisions[node if group is None else group.first]
    merged = str(first.candidates.constraints.requested) if first.candidates is not None else first.device
    notice = placement.dropped_requests.get(node)
    got = placement.devices.by_name[device].spec
    rivals = [
        (kind, member, spec)
        for (kind, name), member in (group.lowest.items() if group is not None else ())
        if not (spec := DeviceName.parse(name) or DeviceName()).compatible_with(own)
    ]
    fixed = [member for kind, member, _ in rivals if kind == "placed"]
    made = [member for kind, member, spec in rivals if kind == "resource" and spec.matches(got)]
    for leaders, how in ((fixed, "placed"), (made, "resource"), ([member for _, member, _ in rivals], "request")):
        if leaders:
            return Overruled(node, device, requested, merged, min(leaders), how, notice)
    return Overruled(node, device, requested, merged, -1, "request", notice)


def _explain_colocated(placement: Placement, node: int, device: str) -> Reason:
    """Return the reason, with the member that decided: placed before this one, else a resource, else a request."""
    rank, got = placement.rank, placement.devices.by_name[device].spec
    group = placement.requests.get(placement.groups.root(node))
    if group is None:
        return Colocated(node, device, node, "call", ())
    leaders: dict[Asked, list[int]] = {"placed": [], "resource": [], "request": []}  # the most constrained first
    for (kind, name), members in group.earliest.items():
        if _asks_for(name, got):
            leaders[kind] += [member for member in members if member != node][:1]
    for how, found in leaders.items():
        if found:
            leader = min(found, key=lambda i: (rank.get(i, len(rank)), i))
            return Colocated(node, device, leader, how, find_colocation_path(placement, node, leader))
    if group.first != node:
        return Colocated(node, device, group.first, "placed", find_colocation_path(placement, node, group.first))
    return Colocated(node, device, node, "call", ())


def _colocated_by_kernel(placement: Placement, node: int, device: str, lacking: str) -> Reason:
    members = list_group_members(placement, node)
    types = placement.groups.own_types
    leader, how = next((i for i in members if lacking not in dict(types[i])), -1), "kernel"
    if leader < 0:
        leader, how = next((i for i in members if i in placement.groups.host_only), -1), "host"
    if leader < 0:
        return Colocated(node, device, node, "call", ())
    return Colocated(node, device, leader, how, find_colocation_path(placement, node, leader))


def _asks_for(name: str, got: DeviceName) -> bool:
    spec = DeviceName.parse(name)
    return spec is not None and spec.is_set and spec.matches(got)
