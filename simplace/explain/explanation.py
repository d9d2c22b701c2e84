"""Explain one node of a placement: each fact and each reason behind its device, in numbered sentences."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from simplace.devices.device_set import Device
from simplace.errors import AmbiguousNodeError, NodeNotFoundError, join_alternatives, join_choices
from simplace.explain import reasons as why
from simplace.explain.finding import name_page
from simplace.explain.sentence import Part, Sentence, join_sentence, join_with_commas
from simplace.explain.sentences import Words
from simplace.graph import dtypes
from simplace.graph.dtypes import DataType
from simplace.kernels.kernel_lookup import NearestDtype
from simplace.placement.candidates import Candidates
from simplace.placement.colocation_graph import ColocationEdge
from simplace.placement.placement import Placement
from simplace.placement.xla_compiler import Cluster, ClusterOp
from simplace.program.known_names import get_known_name
from viz.names import visible


@dataclass(frozen=True, slots=True)
class Explanation:
    """Record of why a node is on its device: a headline and numbered sentences, in the order of the facts.

    `pages` names the pages of the rules that decided, each once: the node's own first, then those of the nodes that it
    follows.
    """

    node: str
    headline: Sentence
    sentences: tuple[Sentence, ...]
    pages: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [str(self.headline), *(f"{i:3}. {line}" for i, line in enumerate(self.sentences, start=1))]
        if self.pages:
            lines.append(f"see {', '.join(self.pages)}")
        return "\n".join(map(visible, lines))


def explain_node(placement: Placement, name: str, clusters: Sequence[Cluster] = ()) -> Explanation:
    """Explain the device of the node called `name`, or of an op of that name in one of the clusters.

    Raise `NodeNotFoundError` with the closest names where there is none.
    """
    compiled = _find_compiled(placement, name, clusters)
    if compiled is not None:
        return Explainer(placement).explain_compiled(*compiled)
    return Explainer(placement).explain(find_node(placement, name))


def list_reason_pages(rules: Iterable[str]) -> tuple[str, ...]:
    """List the pages of reasons' rules, each once, in their order.

    >>> list_reason_pages(["colocated", "requested", "colocated"])
    ('reason/colocated', 'reason/requested')
    """
    return tuple(name_page(rule, "reason") for rule in dict.fromkeys(rules))


def check_found(placement: Placement, name: str, clusters: Sequence[Cluster]) -> None:
    """Raise `NodeNotFoundError` unless `explain_node` would find the name."""
    if _find_compiled(placement, name, clusters) is None:
        find_node(placement, name)


def _find_compiled(placement: Placement, name: str, clusters: Sequence[Cluster]) -> tuple[Cluster, ClusterOp] | None:
    """Return the op that XLA compiles under this name, or the only one under a name with this end."""
    if name in placement.graph.ids:
        return None
    every = [(cluster, op) for cluster in clusters for op in cluster.ops]
    found = [each for each in every if each[1].name == name] or [
        each for each in every if each[1].name.endswith("/" + name)
    ]
    return found[0] if len(found) == 1 else None


class Explainer:
    """Explain many nodes of one placement: what all of them need is looked up once."""

    def __init__(self, placement: Placement) -> None:
        self._words = Words(placement)

    def explain(self, node: int) -> Explanation:
        """Explain the device of a node by id, or why it has none."""
        words, lines = self._words, self.list_sentences(node)
        if node in words.placement.decisions:
            runs = f"{words.of_layer(node)} runs on {words.device(words.placement.device(node))}{words.at(node)}."
        else:
            runs = f"{words.of_layer(node)}{words.at(node)} has no device: TensorFlow refuses to place this graph."
        headline = join_sentence(words.full_name(node), runs)
        return Explanation(words.graph.names[node], headline, tuple(lines), self._list_pages(node))

    def list_sentences(self, node: int) -> list[Sentence]:
        """Return the numbered sentences of the explanation of a node."""
        teller = _Teller(self._words)
        return teller.tell(node) if node in self._words.placement.decisions else teller.tell_refused(node)

    def name_rule(self, node: int) -> str:
        """Return the name of the rule that decided the device of a node, "" where it has none."""
        return self._words.find_reason(node).rule if node in self._words.placement.decisions else ""

    def explain_compiled(self, cluster: Cluster, op: ClusterOp) -> Explanation:
        """Explain the device of an op that XLA compiles."""
        return _Teller(self._words).tell_compiled(cluster, op)

    def reason(self, reason: why.Reason) -> Sentence:
        """Return the sentence of one reason."""
        return self._words.reason(reason)

    def _list_pages(self, node: int) -> tuple[str, ...]:
        placement = self._words.placement
        if node not in placement.decisions:
            return (name_page("refused"),)
        find = self._words.find_reason
        return list_reason_pages(reason.rule for reason in why.follow_reasons(placement, find(node), find))


def find_node(placement: Placement, name: str) -> int:
    """Return the id of the node called `name`, also where only the end of the name is given and is unique.

    A name that no node has counts as one in which layers are called as the user named them. Raise `AmbiguousNodeError`
    where several names have that end, `NodeNotFoundError` where none has.
    """
    graph = placement.graph
    if name in graph.ids and graph.ids[name] > 1:
        return graph.ids[name]
    ends = [i for i in graph.op_ids if graph.names[i].endswith("/" + name)] or _find_known(placement, name)
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise AmbiguousNodeError(
            f"{name!r} is ambiguous in {placement.program.title}: {len(ends)} nodes end in it; "
            f"name one of {join_choices(graph.names[i] for i in ends)}"
        )
    raise describe_missing_node([placement], name)


def describe_missing_node(placements: Sequence[Placement], name: str) -> NodeNotFoundError:
    """Return the error for a name that no node of some programs has, with the closest names in all of them."""
    names = dict.fromkeys(known for placement in placements for known in placement.graph.names[2:])
    close = difflib.get_close_matches(name, names, n=5, cutoff=0.4)
    hint = f"did you mean {join_alternatives(close)}?" if close else "simplace show --table lists every node"
    titles = dict.fromkeys(placement.program.title for placement in placements)
    return NodeNotFoundError(f"no node is called {name!r} in {join_choices(titles, limit=4)}; {hint}")


def _find_known(placement: Placement, name: str) -> list[int]:
    """List the nodes of a name by their layers, or else those that end in it."""
    known = {i: get_known_name(placement.placed, i) for i in placement.graph.op_ids if placement.notes(i).known_as}
    return [i for i in known if known[i] == name] or [i for i in known if known[i].endswith("/" + name)]


class _Teller:
    """Collect the numbered sentences about one node."""

    def __init__(self, words: Words) -> None:
        self._placement = words.placement
        self._words = words
        self._lines: list[Sentence] = []

    def tell(self, node: int) -> list[Sentence]:
        reason = self._words.find_reason(node)
        if not self._placement.graph.assigned[node]:
            self._say_request(node)
            self._say_kernels(node)
            self._say_group(node, reason)
            self._say_candidates(node)
        self._say_decision(reason)
        self._say_memory(node)
        return self._lines

    def tell_compiled(self, cluster: Cluster, op: ClusterOp) -> Explanation:
        words, reason = self._words, why.make_compiled_reason(cluster, op)
        of_call = why.find_reason(self._placement, cluster.node)
        self._say(words.compiled(reason))
        if not op.is_supported:
            self._say(f"XLA has no kernel for {op.op}: TensorFlow refuses to run the call.")
        self._say("As for ", words.node(cluster.node), ": ", words.reason(of_call))
        at = f" at {op.at}" if op.at else ""
        headline = join_sentence(f"{op.name} ({op.op}) runs on {words.device(cluster.device)}{at}.")
        return Explanation(op.name, headline, tuple(self._lines), list_reason_pages((reason.rule, of_call.rule)))

    def tell_refused(self, node: int) -> list[Sentence]:
        words, refusal = self._words, self._placement.refusal
        assert refusal is not None, "only a refused placement leaves nodes out"
        self._say_request(node)
        self._say_kernels(node)
        self._say_ties(node, self._own_joins(node))
        at: list[Part] = [" at ", words.node(refusal.node)] if refusal.node >= 0 and refusal.node != node else []
        self._say("TensorFlow refuses the graph", *at, f" ({refusal.code}): {refusal.message.splitlines()[0]}")
        for line in self._words.conflict:
            self._say(line)
        return self._lines

    def _say(self, *parts: Part | Sentence) -> None:
        self._lines.append(join_sentence(*parts))

    def _say_alike(self, key: object, state: Callable[[], str]) -> None:
        """Add a line that many nodes share, by a key that determines it: its sentence is made once."""
        said = self._words.alike.get(key)
        if said is None:
            text = state()
            said = self._words.alike[key] = join_sentence(text) if text else None
        if said:
            self._lines.append(said)

    def _say_request(self, node: int) -> None:
        notes, origin = self._placement.notes(node), self._placement.graph.origins[node]
        known = self._placement.graph.requested[node], notes.device_at, origin.made_by, origin.via
        self._say_alike(known, partial(_state_request, *known))

    def _say_kernels(self, node: int) -> None:
        words = self._words
        key = words.graph.ops[node], id(words.graph.attrs[node]), self._placement.groups.own_types[node]
        said = words.kernels.get(key)
        if said is None:
            said = words.kernels[key] = self._list_kernels(node)
        self._lines += said

    def _list_kernels(self, node: int) -> list[Sentence]:
        facts, words = why.kernel_facts(self._placement, node), self._words
        op = words.graph.ops[node]
        has = " and ".join(facts.types) or "no device type here"
        lines = [f"{op}{words.dtypes(node)} has a kernel for {has}."]
        lines += [f"It has none for {kind}{_describe_nearest(nearest)}." for kind, nearest in facts.lacking]
        return [join_sentence(line) for line in lines]

    def _say_group(self, node: int, reason: why.Reason) -> None:
        self._say_ties(node, reason.path if isinstance(reason, why.Colocated) else self._own_joins(node))

    def _say_ties(self, node: int, colocation_edges: tuple[ColocationEdge, ...]) -> None:
        members = why.list_group_members(self._placement, node)
        if len(members) < 2:
            return
        words, groups = self._words, self._placement.groups
        shown = [words.node(i) for i in islice((i for i in members if i != node), 4)]
        more = f" and {len(members) - 1 - len(shown)} more" if len(members) - 1 > len(shown) else ""
        kinds = " or ".join(kind for kind, _ in groups.types(node)) or "no device type"
        group = f"{more}: a colocation group of {len(members)}, which can run on {kinds}."
        self._say("It is colocated with ", join_with_commas(shown), group)
        for join in colocation_edges[:6]:
            self._say("Colocated because ", words.join(join), ".")

    def _own_joins(self, node: int) -> tuple[ColocationEdge, ...]:
        return tuple(self._placement.joins_at.get(node, ()))[:3]

    def _say_candidates(self, node: int) -> None:
        candidates = self._placement.decisions[node].candidates
        assert candidates is not None, "a node that was not assigned before has candidates"
        self._say_alike(id(candidates), partial(_state_candidates, self._placement, candidates))

    def _say_decision(self, reason: why.Reason) -> None:
        self._say(self._words.reason(reason))
        for further in islice(why.follow_reasons(self._placement, reason, self._words.find_reason), 1, None):
            self._say("As for ", self._words.node(further.node), ": ", self._words.reason(further))

    def _say_memory(self, node: int) -> None:
        memory, graph = self._words.memory, self._placement.graph
        if not memory.special[node]:
            return
        device = self._placement.devices.find(self._placement.device(node))
        if device is None or device.type == "CPU":
            return
        for what, types, host in zip(
            ("input", "output"), (graph.in_types[node], graph.out_types[node]), memory.of(node), strict=True
        ):
            self._say_alike((what, device.name, types, host), partial(_state_memory, what, device, types, host))


def _state_request(request: str, device_at: str, made_by: str, via: str) -> str:
    if not request:
        made = f"TensorFlow added this node ({made_by}); " if made_by else ""
        return f"{made}{'n' if made else 'N'}o device was requested for it."
    where = f" by the line {device_at}" if device_at else ""
    how = ""
    if made_by:
        how = f", which TensorFlow passed on when it made the node ({made_by})"
    elif via and not where:
        how = f", partly or wholly from the call {via}"
    return f"The device {request} was requested{where}{how}."


def _state_candidates(placement: Placement, candidates: Candidates) -> str:
    default = placement.default
    names = [
        d.short + (" (the default device)" if default is not None and d.name == default.name else "")
        for d in candidates.devices
    ]
    return f"Candidate devices, highest priority first: {', '.join(names)}."


def _state_memory(what: str, device: Device, types: tuple[int, ...], host: tuple[bool, ...]) -> str:
    """Return which inputs or outputs are in host memory, "" for none."""
    slots = [k for k, is_host in enumerate(host) if is_host and types[k] != DataType.DT_RESOURCE]
    names = ", ".join(f"{k} ({dtypes.format_dtype(types[k])})" for k in slots)
    s, are = ("s", "are") if len(slots) > 1 else ("", "is")
    return f"The node runs on {device.short}, but its {what}{s} {names} {are} kept in host memory." if slots else ""


def _describe_nearest(nearest: NearestDtype | None) -> str:
    if nearest is None:
        return ", whatever the data type"
    return (
        f" with {nearest.attr}={dtypes.format_dtype(nearest.dtype)}; the nearest data type that has one is "
        f"{dtypes.format_dtype(nearest.instead)}"
    )
