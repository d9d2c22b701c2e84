"""The layers of Keras behind a step: the call in the user's files that makes each, its ops, gradients and updates."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from simplace.graph.op_kinds import is_arg
from simplace.program.known_names import get_known_name, tidy_path
from simplace.suggestions.evidence import Evidence, resolve_line
from simplace.suggestions.source_file import SourceFile

_TAPE = "gradient_tape"  # the scope of what a tape makes
_WRITES = ("Assign", "ResourceApply", "ResourceScatter", "ResourceSparseApply")


@dataclass(frozen=True)
class LayerUnit:
    """Record of a layer: its name, the call that makes it, and the nodes of a step that are its.

    `forward` are its own ops and `gradients` those of their gradients. `updates` are those of an optimizer that are for
    its variables alone. `variables` are the nodes that hold these, and what an optimizer keeps for them.
    """

    name: str
    source: SourceFile
    call: ast.Call
    forward: tuple[int, ...]
    gradients: tuple[int, ...]
    updates: tuple[int, ...] = ()
    variables: tuple[int, ...] = ()

    @property
    def nodes(self) -> tuple[int, ...]:
        """List all that it computes."""
        return self.forward + self.gradients + self.updates


@dataclass(frozen=True)
class Makers:
    """The calls that made the run's layers, by the name of the layer, in the order in which they were made.

    A layer whose name another one has, too, is not among them; nor is a model.
    """

    calls: Mapping[str, tuple[SourceFile, ast.Call]] = field(default_factory=dict)

    @classmethod
    def of(cls, evidence: Evidence) -> Makers:
        """Look up what the run recorded of its layers."""
        facts = [fact for fact in evidence.result.python if fact.kind == "layer made"]
        times = Counter(fact.values["layer"] for fact in facts)
        files = {source.path: source for source in evidence.files}
        calls: dict[str, tuple[SourceFile, ast.Call]] = {}
        for fact in facts:
            source, name = files.get(resolve_line(fact.at)[0]), fact.values["layer"]
            call = None if source is None or fact.values["model"] else _find_call(source, fact.values["extent"])
            if source is not None and call is not None and times[name] == 1:
                calls[name] = source, call
        return cls(calls)

    def list_layers(self, call: ast.Call) -> list[str]:
        """Name the layers that a call makes, in the order in which it does."""
        return [name for name, (_, maker) in self.calls.items() if maker is call]


def list_layers(evidence: Evidence, makers: Makers) -> list[LayerUnit]:
    """List the layers that compute something in the step, in the order in which they were made.

    Of layers within layers, the outermost counts.
    """
    forward, gradients = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    placement = evidence.placed.placement
    for node in placement.decisions:
        path = tidy_path(get_known_name(placement.placed, node))
        name = next((part for part in path[:-1] if part in makers.calls), "")
        if name:
            (gradients if _TAPE in path else forward)[name].append(node)
    owners = {node: name for of in (forward, gradients) for name, nodes in of.items() for node in nodes}
    updates = _Updates(evidence, owners)
    return [
        LayerUnit(name, *maker, tuple(forward[name]), tuple(gradients[name]), *updates.of_layer(name))
        for name, maker in makers.calls.items()
        if forward[name]
    ]


@dataclass
class _Updates:
    """What an optimizer computes for one layer alone: `owners` names the layer of each node that a layer has."""

    evidence: Evidence
    owners: Mapping[int, str]

    def of_layer(self, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the nodes of the updates of a layer's variables, and the nodes that hold these and their state."""
        nodes, variables = self._of_layers.get(name, (set(), set()))
        return tuple(sorted(nodes)), tuple(sorted(variables))

    @cached_property
    def _of_layers(self) -> dict[str, tuple[set[int], set[int]]]:
        variables = defaultdict[str, set[int]](set)
        for variable, users in self._users.items():
            names = {self.owners[user] for user in users if user in self.owners}
            if len(names) == 1:
                variables[names.pop()].add(variable)
        nodes: dict[str, set[int]] = {}
        for _ in range(2):  # of the variables, then of what the optimizer keeps for them
            found = {name: self._find_sources(held) for name, held in variables.items()}
            times = Counter(node for each in found.values() for node in each)
            nodes = {name: {node for node in each if times[node] == 1} for name, each in found.items()}
            read = {name: {one for node in each for one in self._read.get(node, ())} for name, each in nodes.items()}
            readers = Counter(variable for each in read.values() for variable in each)
            for name, each in read.items():
                variables[name] |= {variable for variable in each if readers[variable] == 1}
        return {name: (nodes[name], held) for name, held in variables.items()}

    @cached_property
    def _users(self) -> dict[int, list[int]]:
        """List the nodes that each variable's handle comes to."""
        return {variable: list(self._follow(variable)) for variable in self.evidence.variables}

    @cached_property
    def _read(self) -> dict[int, list[int]]:
        """List the variables whose handles come to each node."""
        found = defaultdict[int, list[int]](list)
        for variable, users in self._users.items():
            for user in users:
                found[user].append(variable)
        return found

    def _follow(self, node: int) -> Iterator[int]:
        graph = self.evidence.placed.placement.graph
        for edge in graph.out_edges[node]:
            if not graph.is_control(edge):
                user = graph.edge_dst[edge]
                yield from self._follow(user) if graph.ops[user] == "Identity" else (user,)

    def _find_sources(self, variables: Iterable[int]) -> set[int]:
        """Find the nodes that write variables, and what these read, up to the layers and the arguments."""
        graph, found = self.evidence.placed.placement.graph, set[int]()
        stack = [user for one in variables for user in self._users[one] if graph.ops[user].startswith(_WRITES)]
        while stack:
            node = stack.pop()
            if node in found or node in self.owners or is_arg(graph.ops[node]) or _is_joint(graph.ops[node]):
                continue
            found.add(node)
            stack += [graph.edge_src[edge] for edge in graph.data_in_edges(node)]
        return found


def find_joints(evidence: Evidence, layers: Sequence[LayerUnit]) -> set[str]:
    """Name the nodes, as the function that they are of does, through which the gradients of several layers go."""
    graph, times = evidence.placed.placement.graph, Counter[int]()
    for layer in layers:
        before = {graph.edge_src[edge] for node in layer.updates for edge in graph.data_in_edges(node)}
        times.update(node for node in before if _is_joint(graph.ops[node]))
    return {graph.origins[node].name for node, count in times.items() if count > 1}


def _is_joint(op: str) -> bool:
    """Return whether an op forwards the gradients of all variables at once, as a sum over one replica does."""
    return op == "IdentityN"


def _find_call(source: SourceFile, extent: str) -> ast.Call | None:
    """Return the call with an extent "line:column-line:column"."""
    return next((call for call in source.calls if _write_extent(call) == extent), None)


def _write_extent(call: ast.Call) -> str:
    return f"{call.lineno}:{call.col_offset}-{call.end_lineno}:{call.end_col_offset}"
