"""Turn reasons into plain sentences: the only place where simplace explains a placement in words."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from simplace.devices import DeviceName
from simplace.errors import NodeNotFoundError, alternatives, choices
from simplace.graph import dtypes
from simplace.graph.dtypes import DataType
from simplace.kernels.search import NearestDtype
from simplace.partition.transfers import MemoryTypes
from simplace.placement import reasons as why
from simplace.placement.colocation import Join, JoinKind
from simplace.placement.conflict import Conflict, Want, conflict
from simplace.placement.placement import Placement


@dataclass(frozen=True, slots=True)
class Explanation:
    """Hold the answer to "why is this node there": a headline and numbered sentences, in the order of the facts."""

    node: str
    headline: str
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([self.headline, *(f"{i:3}. {line}" for i, line in enumerate(self.sentences, start=1))])


Mark = Callable[[int, str], str]


def explain(placement: Placement, name: str) -> Explanation:
    """Explain the device of the node called `name`; raise `NodeNotFoundError` with the closest names otherwise."""
    return Explainer(placement).explain(find(placement, name))


class Explainer:
    """Explain many nodes of one placement: what all of them need is looked up once.

    `mark` is given each node that a sentence names, with its words there, and returns what stands in their place.
    """

    def __init__(self, placement: Placement, mark: Mark | None = None) -> None:
        self._words = _Words(placement, mark)

    def explain(self, node: int) -> Explanation:
        """Explain the device of a node by id, or why it has none."""
        teller = _Teller(self._words)
        return teller.tell(node) if node in self._words.placement.decisions else teller.tell_refused(node)

    def reason(self, reason: why.Reason) -> str:
        """Say one reason in one sentence."""
        return self._words.reason(reason)


def find(placement: Placement, name: str) -> int:
    """Return the id of the node called `name`, also where only the end of the name is given and is unique."""
    graph = placement.graph
    if name in graph.ids and graph.ids[name] > 1:
        return graph.ids[name]
    ends = [i for i in range(2, len(graph)) if graph.names[i].endswith("/" + name)]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise NodeNotFoundError(
            f"{name!r} is the end of {len(ends)} node names in {placement.program.name}; "
            f"say which: {choices(graph.names[i] for i in ends)}"
        )
    close = difflib.get_close_matches(name, graph.names[2:], n=5, cutoff=0.4)
    hint = f"did you mean {alternatives(close)}?" if close else "simplace show --table lists every node"
    raise NodeNotFoundError(f"no node is called {name!r} in {placement.program.name}; {hint}")


def sentence(placement: Placement, reason: why.Reason) -> str:
    """Say one reason in one sentence."""
    return _Words(placement).reason(reason)


def followed(reason: why.Reason) -> int | None:
    """Return the node from which a reason takes the device over, None where it decides by itself."""
    match reason:
        case why.Colocated() if reason.leader != reason.node:
            return reason.leader
        case why.MetadataFollowsInput() | why.IdentityFollowsInput():
            return reason.input
        case why.GeneratorFollowsConsumers():
            return reason.consumers[0]
        case why.LoopVariable():
            return reason.source
    return None


def explain_conflict(placement: Placement) -> tuple[str, ...]:
    """Say which wishes clash in a refused placement, what ties them, and what would mend it; () if nothing is known."""
    found = conflict(placement)
    if found is None:
        return ()
    words = _Words(placement)
    wishes = [_wish(words, want) for want in found.wants]
    ties = [f"They are tied because {words.join(join)}." for join in found.path]
    return (*wishes, *ties, _remedy(words, found))


def _wish(words: _Words, want: Want) -> str:
    notes = words.placement.notes(want.node)
    name = f"{words.node(want.node)}{words.at(want.node)}"
    wishes = []
    if want.fixed:
        wishes.append(f"is fixed to {words.device(want.device)}")
    elif want.device:
        line = f" (by the line {notes.device_at})" if notes.device_at else ""
        wishes.append(f"asks for {_spec(want.device)}{line}")
    if set(want.types) != set(words.placement.groups.support.device_types):
        wishes.append(f"has a kernel for {' and '.join(want.types) or 'no device type here'}{words.dtypes(want.node)}")
    return f"{name} {' and '.join(wishes)}."


def _remedy(words: _Words, found: Conflict) -> str:
    """Name one way out for each wish."""
    ways = []
    for want in found.wants:
        name = words.name(want.node)
        if want.device and not want.fixed:
            ways.append(f"request another device for {name}, or none")
        elif want.fixed:
            ways.append(f"put what {name} stands for elsewhere")
        nearest = [n for kind, n in why.kernel_facts(words.placement, want.node).lacking if kind == "GPU" and n]
        if nearest:
            ways.append(f"give {name} {nearest[0].attr}={dtypes.name(nearest[0].instead)}, which has a GPU kernel")
    if not words.placement.soft_placement:
        ways.append("turn soft placement on")
    return f"What would help: {'; or '.join(ways)}." if ways else "Each of them would have to give way."


class _Words:
    """Spell nodes and devices of one placement."""

    def __init__(self, placement: Placement, mark: Mark | None = None) -> None:
        self.placement = placement
        self.graph = placement.graph
        self.mark = mark or _unmarked

    @cached_property
    def memory(self) -> MemoryTypes:
        return MemoryTypes(self.placement)

    @cached_property
    def conflict(self) -> tuple[str, ...]:
        return explain_conflict(self.placement)

    def node(self, i: int) -> str:
        variable = self.placement.notes(i).variable
        return self.mark(i, f"the variable {variable!r}") if variable else self.full_name(i)

    def full_name(self, i: int) -> str:
        return self.mark(i, f"{self.graph.names[i]} ({self.graph.ops[i]})")

    def name(self, i: int) -> str:
        variable = self.placement.notes(i).variable
        return self.mark(i, f"the variable {variable!r}" if variable else self.graph.names[i])

    def reason(self, reason: why.Reason) -> str:
        return _SENTENCES[type(reason)](self, reason)

    def device(self, name: str) -> str:
        found = self.placement.devices.find(name)
        if found is not None:
            return found.short
        spec = DeviceName.parse(name)
        return name if spec is None else str(spec)

    def devices(self, names: tuple[str, ...]) -> str:
        return ", ".join(self.device(name) for name in names)

    def at(self, i: int) -> str:
        at = self.placement.notes(i).at
        return f" at {at}" if at else ""

    def dtypes(self, i: int) -> str:
        op_def = self.placement.groups.support.table.op(self.graph.ops[i])
        if op_def is None:
            return ""
        attrs = self.graph.attrs[i]
        pairs = [f"{a}={_dtype(attrs[a])}" for a, kind in op_def.attr_types.items() if "type" in kind and a in attrs]
        return " with " + ", ".join(pairs) if pairs else ""

    def join(self, join: Join) -> str:
        first, second = self.name(join.first), self.name(join.second)
        match join.kind:
            case JoinKind.CLASS:
                return f"{first} and {second} share the colocation attribute loc:@{join.group}"
            case JoinKind.REFERENCE:
                return f"{second} takes a reference to {first}"
            case JoinKind.RESOURCE:
                return f"{second} uses the resource that comes from {first}"
            case JoinKind.DATASET:
                return f"{second} is a dataset built on the dataset {first}"
        return f"{first} and {second} pass the same resource through a call"


def _unmarked(node: int, words: str) -> str:
    return words


def _dtype(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_dtype(item) for item in value) + "]"
    return dtypes.name(value) if isinstance(value, int) else str(value)


class _Teller:
    """Collect the numbered sentences about one node."""

    def __init__(self, words: _Words) -> None:
        self._placement = words.placement
        self._words = words
        self._lines: list[str] = []

    def tell(self, node: int) -> Explanation:
        words, placement = self._words, self._placement
        device = words.device(placement.device(node))
        reason = why.reason(placement, node)
        if not placement.graph.assigned[node]:
            self._say_request(node)
            self._say_kernels(node)
            self._say_group(node, reason)
            self._say_candidates(node)
        self._say_decision(reason)
        self._say_memory(node)
        headline = f"{words.full_name(node)} runs on {device}{words.at(node)}."
        return Explanation(words.graph.names[node], headline, tuple(self._lines))

    def tell_refused(self, node: int) -> Explanation:
        words, refusal = self._words, self._placement.refusal
        assert refusal is not None, "only a refused placement leaves nodes out"
        self._say_request(node)
        self._say_kernels(node)
        self._say_ties(node, self._own_joins(node))
        at = f" at {words.node(refusal.node)}" if refusal.node >= 0 and refusal.node != node else ""
        self._say(f"TensorFlow refuses the graph{at} ({refusal.code}): {refusal.message.splitlines()[0]}")
        for line in self._words.conflict:
            self._say(line)
        headline = f"{words.full_name(node)}{words.at(node)} has no device: TensorFlow refuses to place this graph."
        return Explanation(words.graph.names[node], headline, tuple(self._lines))

    def _say(self, line: str) -> int:
        self._lines.append(line)
        return len(self._lines)

    def _say_request(self, node: int) -> None:
        graph, notes, origin = self._placement.graph, self._placement.notes(node), self._placement.graph.origins[node]
        request = graph.requested[node]
        if not request:
            made = f"TensorFlow made this node itself ({origin.made_by}); " if origin.made_by else ""
            self._say(f"{made}{'n' if made else 'N'}o device was requested for it.")
            return
        where = f" by the line {notes.device_at}" if notes.device_at else ""
        via = ""
        if origin.made_by:
            via = f", which TensorFlow passed on when it made the node ({origin.made_by})"
        elif origin.via and not where:
            via = f", partly or wholly from the call {origin.via}"
        self._say(f"The device {request} was requested{where}{via}.")

    def _say_kernels(self, node: int) -> None:
        facts, words = why.kernel_facts(self._placement, node), self._words
        op = words.graph.ops[node]
        has = " and ".join(facts.types) or "no device type here"
        self._say(f"{op}{words.dtypes(node)} has a kernel for {has}.")
        for kind, nearest in facts.lacking:
            self._say(f"It has none for {kind}{_nearest(nearest)}.")

    def _say_group(self, node: int, reason: why.Reason) -> None:
        self._say_ties(node, reason.path if isinstance(reason, why.Colocated) else self._own_joins(node))

    def _say_ties(self, node: int, joins: tuple[Join, ...]) -> None:
        members = why.group_of(self._placement, node)
        if len(members) < 2:
            return
        words, groups = self._words, self._placement.groups
        shown = [words.node(i) for i in members if i != node][:4]
        more = f" and {len(members) - 1 - len(shown)} more" if len(members) - 1 > len(shown) else ""
        kinds = " or ".join(kind for kind, _ in groups.types(node)) or "no device type"
        self._say(
            f"It must share a device with {', '.join(shown)}{more}: a colocation group of {len(members)}, which can "
            f"run on {kinds}."
        )
        for join in joins[:6]:
            self._say(f"They are tied because {words.join(join)}.")

    def _own_joins(self, node: int) -> tuple[Join, ...]:
        return tuple(self._placement.joins_at.get(node, ()))[:3]

    def _say_candidates(self, node: int) -> None:
        candidates = self._placement.decisions[node].candidates
        assert candidates is not None, "a node that was not assigned before has candidates"
        default = self._placement.default
        names = [
            d.short + (" (the default device)" if default is not None and d.name == default.name else "")
            for d in candidates.devices
        ]
        self._say(f"The devices left to choose from, best first: {', '.join(names)}.")

    def _say_decision(self, reason: why.Reason) -> None:
        seen = {reason.node}
        self._say(self._words.reason(reason))
        source = followed(reason)
        while source is not None and source in self._placement.decisions and source not in seen:
            seen.add(source)
            reason = why.reason(self._placement, source)
            self._say(f"As for {self._words.node(source)}: {self._words.reason(reason)}")
            source = followed(reason)

    def _say_memory(self, node: int) -> None:
        device = self._placement.devices.find(self._placement.device(node))
        if device is None or device.type == "CPU":
            return
        inputs, outputs = self._words.memory.of(node)
        for what, types, host in (
            ("input", self._placement.graph.in_types[node], inputs),
            ("output", self._placement.graph.out_types[node], outputs),
        ):
            slots = [k for k, is_host in enumerate(host) if is_host and types[k] != DataType.DT_RESOURCE]
            if slots:
                names = ", ".join(f"{k} ({dtypes.name(types[k])})" for k in slots)
                self._say(
                    f"The node runs on {device.short}, but its {what}{'s' if len(slots) > 1 else ''} {names} "
                    f"{'are' if len(slots) > 1 else 'is'} kept in host memory."
                )


def _nearest(nearest: NearestDtype | None) -> str:
    if nearest is None:
        return ", whatever the data type"
    return (
        f" with {nearest.attr}={dtypes.name(nearest.dtype)}; the nearest data type that has one is "
        f"{dtypes.name(nearest.instead)}"
    )


def _argument(words: _Words, reason: why.Argument) -> str:
    device = words.device(reason.device)
    if reason.pinned:
        return f"Arguments of type {reason.pinned} enter a function in host memory, on {device}."
    variable = words.placement.notes(reason.node).variable
    if variable:
        return f"This argument is the variable {variable!r}, which lives on {device}."
    if words.graph.out_types[reason.node][0] == DataType.DT_RESOURCE:
        return f"This argument is a handle to a resource (such as a variable) that lives on {device}."
    return f"The caller's tensor for this argument is on {device}, and an argument stays where it is."


def _result(words: _Words, reason: why.Result) -> str:
    device, producer = words.device(reason.device), words.node(reason.producer)
    if words.graph.requested[reason.producer]:
        return f"A result goes where its producer {producer} asked to be, even if that one cannot run there: {device}."
    return f"A result goes to the device that was fixed for its producer {producer} before placement: {device}."


def _loop_variable(words: _Words, reason: why.LoopVariable) -> str:
    return (
        f"The loop's nodes for a variable take over the device to which its initial value was fixed before placement: "
        f"{words.device(reason.device)}."
    )


def _kept(words: _Words, reason: why.KeptFromEarlierRun) -> str:
    return f"An earlier run of the session put this stateful node on {words.device(reason.device)}, and there it stays."


def _requested(words: _Words, reason: why.Requested) -> str:
    return f"It asked for {_spec(reason.request)} and got {words.device(reason.device)}."


def _soft_fallback(words: _Words, reason: why.SoftFallback) -> str:
    device, lacking = words.device(reason.device), reason.kernels_missing_at
    if not reason.exists:
        cause = "no such device exists here"
    elif lacking == reason.node:
        cause = f"{words.graph.ops[lacking]} has no kernel there for its data types"
    elif lacking >= 0:
        cause = f"{words.node(lacking)}, with which it is colocated, has no kernel there"
    else:
        cause = "the members of its colocation group have no kernel in common there"
    own = reason.leader == reason.node
    who = "It" if own else words.node(reason.leader) + ", in its group," if reason.leader >= 0 else "Its group"
    moved = " and moved the resource in the group there too" if reason.moved_resource else ""
    return f"{who} asked for {_spec(reason.request)}, but {cause}; soft placement chose {device} instead{moved}."


def _colocated(words: _Words, reason: why.Colocated) -> str:
    device, leader = words.device(reason.device), words.node(reason.leader)
    match reason.how:
        case "placed":
            return f"Its colocation group was fixed to {device} by {leader}."
        case "resource":
            return f"Its colocation group goes where the resource {leader} lives: {device}."
        case "request":
            asked = _spec(words.graph.requested[reason.leader])
            return f"Its colocation group goes to {device} because {leader} asked for {asked}."
        case "host":
            return f"Its colocation group stays on {device}: {leader} holds what only host memory can hold."
        case "call":
            return f"Its colocation group goes where the resource is that a called function returns: {device}."
    return f"Its colocation group can only run on {device}: {leader} has no kernel for the preferred device type."


def _overruled(words: _Words, reason: why.Overruled) -> str:
    device = words.device(reason.device)
    if reason.notice is not None:
        source = words.node(reason.notice.other)
        return (
            f"It asked for {_spec(reason.request)}, but it uses a resource of {source}, and a resource's device beats "
            f"the request of its user: {device}."
        )
    start = f"It asked for {_spec(reason.request)}, but"
    if reason.leader < 0:
        return f"{start} its colocation group as a whole has to be on {device}."
    leader = words.node(reason.leader)
    if reason.how == "placed":
        return f"{start} {leader} in its colocation group was fixed to another device before placement: {device}."
    other = _spec(words.graph.requested[reason.leader])
    if reason.how == "resource":
        return f"{start} the resource {leader} in its colocation group asked for {other}, which comes first: {device}."
    left = f"leaving {_spec(reason.merged)}" if reason.merged else "leaving none"
    return (
        f"{start} {leader} in its colocation group asked for {other}; requests that contradict each other cancel out, "
        f"{left}, and the group got {device}."
    )


def _only_kernel(words: _Words, reason: why.OnlyKernel) -> str:
    preferred, device = words.device(reason.preferred), words.device(reason.device)
    return f"Nobody asked for a device; {preferred} would come first but has no kernel for it, so it runs on {device}."


def _held_on_host(words: _Words, reason: why.HeldOnHost) -> str:
    return (
        "Its variant input holds what only host memory can hold (strings or a dataset), so it stays on "
        f"{words.device(reason.device)}."
    )


def _default_device(words: _Words, reason: why.DefaultDevice) -> str:
    return f"Nobody asked for a device, so it takes the device of the function's call: {words.device(reason.device)}."


def _preferred(words: _Words, reason: why.Preferred) -> str:
    over = f" before {words.devices(reason.over)}" if reason.over else ", the only candidate"
    return f"Nobody asked for a device, so it takes the best candidate: {words.device(reason.device)}{over}."


def _metadata(words: _Words, reason: why.MetadataFollowsInput) -> str:
    op = words.graph.ops[reason.node]
    return f"{op} reads no data, only the description of its input, so it stays with {words.node(reason.input)}."


def _identity(words: _Words, reason: why.IdentityFollowsInput) -> str:
    return f"An Identity with one input and one consumer stays with its input, {words.node(reason.input)}."


def _generator(words: _Words, reason: why.GeneratorFollowsConsumers) -> str:
    count, device = len(reason.consumers), words.device(reason.device)
    if count == 1:
        return f"It has no inputs, so it goes where its consumer {words.node(reason.consumers[0])} is: {device}."
    return f"It has no inputs, so it goes where its {count} consumers are: {device}."


def _spec(text: str) -> str:
    return text.removeprefix("/job:localhost/replica:0/task:0")


_SENTENCES: dict[type[why.Reason], Callable[[_Words, Any], str]] = {
    why.Argument: _argument,
    why.Result: _result,
    why.LoopVariable: _loop_variable,
    why.KeptFromEarlierRun: _kept,
    why.Requested: _requested,
    why.SoftFallback: _soft_fallback,
    why.Colocated: _colocated,
    why.Overruled: _overruled,
    why.OnlyKernel: _only_kernel,
    why.HeldOnHost: _held_on_host,
    why.DefaultDevice: _default_device,
    why.Preferred: _preferred,
    why.MetadataFollowsInput: _metadata,
    why.IdentityFollowsInput: _identity,
    why.GeneratorFollowsConsumers: _generator,
}
