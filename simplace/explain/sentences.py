"""Write reasons and conflicts as plain sentences: the only place where simplace explains a decision in words."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

from simplace.devices.device_name import DeviceName
from simplace.explain import reasons as why
from simplace.explain.conflict import Conflict, Constraint, find_conflict
from simplace.explain.sentence import NodeLink, Sentence, join_sentence
from simplace.graph import dtypes
from simplace.graph.dtypes import DataType
from simplace.partition.transfers import MemoryTypes
from simplace.placement.colocation_graph import ColocationEdge, ColocationEdgeKind
from simplace.placement.placement import Placement
from simplace.program.known_names import get_known_name

# What it is in a group's leader that decides, by `Colocated.how`.
DECIDED_BY = {
    "placed": "placed first", "request": "its request", "resource": "its resource", "kernel": "its kernels",
    "host": "its host-only contents", "call": "the function it calls",
}  # fmt: skip
_Reason = TypeVar("_Reason", bound=why.Reason)

SENTENCES: dict[type[why.Reason], Callable[[Words, Any], Sentence]] = {}


def state_reason(placement: Placement, reason: why.Reason) -> Sentence:
    """Return the sentence of one reason."""
    return Words(placement).reason(reason)


def state_conflict(placement: Placement) -> tuple[Sentence, ...]:
    """Return the conflicting constraints of a refused placement, the colocation edges between them, and a fix."""
    found = find_conflict(placement)
    if found is None:
        return ()
    words = Words(placement)
    stated = [_state_constraint(words, constraint) for constraint in found.constraints]
    edges = [join_sentence("Colocated because ", words.join(join), ".") for join in found.path]
    return (*stated, *edges, _suggest_changes(words, found))


def summarize_conflict(placement: Placement) -> str:
    """Return in a line which constraints of a refused placement no device meets, "" where none is at fault."""
    found = find_conflict(placement)
    if found is None:
        return ""
    words = Words(placement)
    told = ", ".join(_name_constraint(words, constraint) for constraint in found.constraints)
    return f"{told}; they must share a device" if len(found.constraints) > 1 else told


class Words:
    """Names of the nodes and devices of one placement; what many sentences need is looked up once."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.graph = placement.graph
        # What kernels nodes have: alike nodes, of one op, one record of attributes and the same kernels, share it.
        self.kernels: dict[tuple[str, int, tuple[tuple[str, int], ...]], list[Sentence]] = {}
        self.alike: dict[object, Sentence | None] = {}  # other sentences that many nodes share, None for nothing to say
        self._reasons: dict[int, why.Reason] = {}

    @cached_property
    def memory(self) -> MemoryTypes:
        """Return which tensors of the placement are in host memory."""
        return MemoryTypes(self.placement.placed)

    @cached_property
    def conflict(self) -> tuple[Sentence, ...]:
        """Return what `state_conflict` does."""
        return state_conflict(self.placement)

    def find_reason(self, node: int) -> why.Reason:
        """Return the reason for a placed node's device."""
        found = self._reasons.get(node)
        if found is None:
            found = self._reasons[node] = why.find_reason(self.placement, node)
        return found

    def reason(self, reason: why.Reason) -> Sentence:
        """Return the sentence of a reason."""
        return SENTENCES[type(reason)](self, reason)

    def compiled(self, reason: why.CompiledByXla) -> Sentence:
        """Return the sentence of why an op that XLA compiles is where it is."""
        device, call = self.device(reason.device), self.full_name(reason.node)
        others = f"together with {reason.others:,} other{'s' * (reason.others != 1)}" if reason.others else "alone"
        return join_sentence(
            f"It is compiled by XLA {others} into one kernel for {device}, where its call ", call, " runs."
        )

    def node(self, i: int) -> NodeLink:
        """Return a link to a node by its variable, or by name and op."""
        return self._variable(i) or self.full_name(i)

    def full_name(self, i: int) -> NodeLink:
        """Return a link to a node by name and op."""
        return NodeLink(i, "full", f"{self.graph.names[i]} ({self.graph.ops[i]})")

    def of_layer(self, i: int) -> str:
        """Return what the node is by the names of its layers, "" where that is its own name or it is of none."""
        known = get_known_name(self.placement.placed, i)
        return "" if known == self.graph.names[i] else f", by its layers' names {known},"

    def name(self, i: int) -> NodeLink:
        """Return a link to a node by its variable, or by name alone."""
        return self._variable(i) or NodeLink(i, "name", self.graph.names[i])

    def _variable(self, i: int) -> NodeLink | None:
        variable = self.placement.notes(i).variable
        return NodeLink(i, "variable", f"the variable {variable!r}") if variable else None

    def device(self, name: str) -> str:
        """Return the short name of a device where it is one of the placement's."""
        found = self.placement.devices.find(name)
        if found is not None:
            return found.short
        spec = DeviceName.parse(name)
        return name if spec is None else str(spec)

    def at(self, i: int) -> str:
        """Return the user's line of a node, "" where that is unknown."""
        at = self.placement.notes(i).at
        return f" at {at}" if at else ""

    def dtypes(self, i: int) -> str:
        """Return the type attributes of a node, "" for none."""
        op_def = self.placement.groups.support.table.op(self.graph.ops[i])
        if op_def is None:
            return ""
        attrs = self.graph.attrs[i]
        pairs = [
            f"{a}={_format_dtype(attrs[a])}" for a, kind in op_def.attr_types.items() if "type" in kind and a in attrs
        ]
        return " with " + ", ".join(pairs) if pairs else ""

    def join(self, join: ColocationEdge) -> Sentence:
        """Return why two nodes must share a device."""
        first, second = self.name(join.first), self.name(join.second)
        match join.kind:
            case ColocationEdgeKind.CLASS:
                return join_sentence(first, " and ", second, f" share the colocation attribute loc:@{join.group}")
            case ColocationEdgeKind.REFERENCE:
                return join_sentence(second, " takes a reference to ", first)
            case ColocationEdgeKind.RESOURCE:
                return join_sentence(second, " uses the resource that comes from ", first)
            case ColocationEdgeKind.DATASET:
                return join_sentence(second, " is a dataset built on the dataset ", first)
        return join_sentence(first, " and ", second, " pass the same resource through a call")


def short_request(text: str) -> str:
    """Return a requested device without the task that every program on one machine is in.

    >>> short_request("/job:localhost/replica:0/task:0/device:GPU:1"), short_request("/job:localhost/replica:0/task:0")
    ('/device:GPU:1', '/job:localhost/replica:0/task:0')
    """
    return text.removeprefix("/job:localhost/replica:0/task:0") or text


def _format_dtype(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_format_dtype(item) for item in value) + "]"
    return dtypes.format_dtype(value) if isinstance(value, int) else str(value)


def _state_constraint(words: Words, constraint: Constraint) -> Sentence:
    notes = words.placement.notes(constraint.node)
    clauses = []
    if constraint.fixed:
        clauses.append(f"is assigned to {words.device(constraint.device)}")
    elif constraint.device:
        line = f" (by the line {notes.device_at})" if notes.device_at else ""
        clauses.append(f"requests {short_request(constraint.device)}{line}")
    if set(constraint.types) != set(words.placement.groups.support.device_types):
        clauses.append(
            f"has a kernel for {' and '.join(constraint.types) or 'no device type here'}{words.dtypes(constraint.node)}"
        )
    return join_sentence(words.node(constraint.node), f"{words.at(constraint.node)} {' and '.join(clauses)}.")


def _name_constraint(words: Words, constraint: Constraint) -> str:
    clauses = []
    if constraint.device:
        wanted = DeviceName.parse(constraint.device)
        device = short_request(constraint.device if wanted is None else str(wanted)).removeprefix("/device:")
        clauses.append(f"{'is on' if constraint.fixed else 'requests'} {device}")
        if wanted is not None and not words.placement.devices.matching(wanted):
            clauses[-1] += ", which is not there"
    if set(constraint.types) != set(words.placement.groups.support.device_types):
        kernels = f"kernels for {' and '.join(constraint.types)} only" if constraint.types else "no kernel here"
        clauses.append(f"has {kernels}")
    return str(join_sentence(words.name(constraint.node), f" {' and '.join(clauses)}"))


def _suggest_changes(words: Words, found: Conflict) -> Sentence:
    """Return one change per constraint that would resolve the conflict."""
    ways: list[Sentence] = []
    for constraint in found.constraints:
        name = words.name(constraint.node)
        if constraint.device and not constraint.fixed:
            ways.append(join_sentence("request another device for ", name, ", or none"))
        elif constraint.fixed:
            ways.append(join_sentence("place the tensor or variable of ", name, " on another device"))
        nearest = [n for kind, n in why.kernel_facts(words.placement, constraint.node).lacking if kind == "GPU" and n]
        if nearest:
            instead = f"use {nearest[0].attr}={dtypes.format_dtype(nearest[0].instead)} for "
            ways.append(join_sentence(instead, name, ", which has a GPU kernel"))
    if not words.placement.soft_placement:
        ways.append(join_sentence("turn soft placement on"))
    if not ways:
        return join_sentence("No single change resolves this; one of these constraints must go.")
    return join_sentence("To fix it: ", *(p for i, way in enumerate(ways) for p in ("; or " if i else "", way)), ".")


def _register_sentence(
    kind: type[_Reason],
) -> Callable[[Callable[[Words, _Reason], Sentence]], Callable[[Words, _Reason], Sentence]]:
    """Register the sentence of a kind of reason."""

    def register(function: Callable[[Words, _Reason], Sentence]) -> Callable[[Words, _Reason], Sentence]:
        SENTENCES[kind] = function
        return function

    return register


@_register_sentence(why.Argument)
def _state_argument(words: Words, reason: why.Argument) -> Sentence:
    device = words.device(reason.device)
    if reason.pinned:
        return join_sentence(f"Arguments of type {reason.pinned} enter a function in host memory, on {device}.")
    variable = words.placement.notes(reason.node).variable
    if variable:
        return join_sentence(f"This argument is the variable {variable!r}, which is on {device}.")
    if words.graph.out_types[reason.node][0] == DataType.DT_RESOURCE:
        return join_sentence(f"This argument is a handle to a resource (such as a variable) that is on {device}.")
    return join_sentence(f"The caller's tensor for this argument is on {device}, and an argument stays where it is.")


@_register_sentence(why.FunctionResult)
def _state_result(words: Words, reason: why.FunctionResult) -> Sentence:
    device, producer = words.device(reason.device), words.node(reason.producer)
    if words.graph.requested[reason.producer]:
        end = f" requested, even if that one cannot run there: {device}."
        return join_sentence("A result goes to the device that its producer ", producer, end)
    start = "A result goes to the device that was assigned to its producer "
    return join_sentence(start, producer, f" before placement: {device}.")


@_register_sentence(why.LoopVariable)
def _state_loop_variable(words: Words, reason: why.LoopVariable) -> Sentence:
    return join_sentence(
        f"The nodes of a loop variable are on the device that its initial value was assigned before placement: "
        f"{words.device(reason.device)}."
    )


@_register_sentence(why.KeptFromEarlierRun)
def _state_kept(words: Words, reason: why.KeptFromEarlierRun) -> Sentence:
    device = words.device(reason.device)
    return join_sentence(f"An earlier run of the session put this stateful node on {device}, and there it stays.")


@_register_sentence(why.Requested)
def _state_requested(words: Words, reason: why.Requested) -> Sentence:
    return join_sentence(f"It requested {short_request(reason.request)} and got {words.device(reason.device)}.")


@_register_sentence(why.SoftFallback)
def _state_soft_fallback(words: Words, reason: why.SoftFallback) -> Sentence:
    device, lacking = words.device(reason.device), reason.kernels_missing_at
    cause = join_sentence("the members of its colocation group have no kernel in common there")
    if not reason.exists:
        cause = join_sentence("no such device exists here")
    elif lacking == reason.node:
        cause = join_sentence(f"{words.graph.ops[lacking]} has no kernel there for its data types")
    elif lacking >= 0:
        cause = join_sentence(words.node(lacking), ", with which it is colocated, has no kernel there")
    who = join_sentence("Its group")
    if reason.leader == reason.node:
        who = join_sentence("It")
    elif reason.leader >= 0:
        who = join_sentence(words.node(reason.leader), ", in its group,")
    moved = " and moved the resource in the group there too" if reason.moved_resource else ""
    requested = f" requested {short_request(reason.request)}, but "
    return join_sentence(who, requested, cause, f"; soft placement chose {device} instead{moved}.")


@_register_sentence(why.Colocated)
def _state_colocated(words: Words, reason: why.Colocated) -> Sentence:
    device, leader = words.device(reason.device), words.node(reason.leader)
    match reason.how:
        case "placed":
            return join_sentence(f"Its colocation group was fixed to {device} by ", leader, ".")
        case "resource":
            return join_sentence("Its colocation group goes where the resource ", leader, f" is: {device}.")
        case "request":
            requested = short_request(words.graph.requested[reason.leader])
            return join_sentence(f"Its colocation group goes to {device} because ", leader, f" requested {requested}.")
        case "host":
            end = " has host-only contents (strings, resources or a dataset)."
            return join_sentence(f"Its colocation group stays on {device}: ", leader, end)
        case "call":
            return join_sentence(
                f"Its colocation group goes where the resource is that a called function returns: {device}."
            )
    end = " has no kernel for the preferred device type."
    return join_sentence(f"Its colocation group can only run on {device}: ", leader, end)


@_register_sentence(why.Overruled)
def _state_overruled(words: Words, reason: why.Overruled) -> Sentence:
    device = words.device(reason.device)
    start = f"It requested {short_request(reason.request)}, but "
    if reason.notice is not None:
        end = f", and the device of a resource takes precedence over the request of an op that uses it: {device}."
        return join_sentence(start, "it uses a resource of ", words.node(reason.notice.other), end)
    if reason.leader < 0:
        return join_sentence(start, f"its colocation group as a whole has to be on {device}.")
    leader = words.node(reason.leader)
    if reason.how == "placed":
        end = f" in its colocation group was assigned to another device before placement: {device}."
        return join_sentence(start, leader, end)
    other = short_request(words.graph.requested[reason.leader])
    if reason.how == "resource":
        end = f" in its colocation group requested {other}, which takes precedence: {device}."
        return join_sentence(start, "the resource ", leader, end)
    left = f"leaving {short_request(reason.merged)}" if reason.merged else "leaving none"
    dropped = f" in its colocation group requested {other}; conflicting requests are dropped (soft placement), "
    return join_sentence(start, leader, dropped, f"{left}, and the group is on {device}.")


@_register_sentence(why.OnlyKernel)
def _state_only_kernel(words: Words, reason: why.OnlyKernel) -> Sentence:
    preferred, device = words.device(reason.preferred), words.device(reason.device)
    return join_sentence(
        f"No device was requested; {preferred} has priority but no kernel for it, so it runs on {device}."
    )


@_register_sentence(why.HeldOnHost)
def _state_held_on_host(words: Words, reason: why.HeldOnHost) -> Sentence:
    return join_sentence(
        "Its variant input has host-only contents (strings or a dataset), so it stays on "
        f"{words.device(reason.device)}."
    )


@_register_sentence(why.DefaultDevice)
def _state_default_device(words: Words, reason: why.DefaultDevice) -> Sentence:
    device = words.device(reason.device)
    return join_sentence(f"No device was requested; the device of the function's call is used: {device}.")


@_register_sentence(why.Preferred)
def _state_preferred(words: Words, reason: why.Preferred) -> Sentence:
    over = f" before {', '.join(map(words.device, reason.over))}" if reason.over else ", the only candidate"
    device = words.device(reason.device)
    return join_sentence(f"No device was requested; the highest-priority candidate is used: {device}{over}.")


@_register_sentence(why.MetadataFollowsInput)
def _state_metadata(words: Words, reason: why.MetadataFollowsInput) -> Sentence:
    op = words.graph.ops[reason.node]
    start = f"{op} reads no data, only the description of its input, so it stays with "
    return join_sentence(start, words.node(reason.input), ".")


@_register_sentence(why.IdentityFollowsInput)
def _state_identity(words: Words, reason: why.IdentityFollowsInput) -> Sentence:
    return join_sentence(
        "An Identity with one input and one consumer stays with its input, ", words.node(reason.input), "."
    )


@_register_sentence(why.GeneratorFollowsConsumers)
def _state_generator(words: Words, reason: why.GeneratorFollowsConsumers) -> Sentence:
    count, device = len(reason.consumers), words.device(reason.device)
    if count == 1:
        consumer = words.node(reason.consumers[0])
        return join_sentence("It has no inputs, so it goes where its consumer ", consumer, f" is: {device}.")
    return join_sentence(f"It has no inputs, so it goes where its {count} consumers are: {device}.")
