"""Assign each drawn node to a part of a step: input, variables, a layer, the loss, gradients, the update.

All of it follows from names that TensorFlow and Keras give (gradient_tape, gradients, a layer's scope), from what an op
does (it reads an iterator, it writes a variable), and from what reads what.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal, NamedTuple

from simplace.graph.dtypes import DataType
from simplace.graph.op_kinds import (
    ASSIGNMENTS,
    VARIABLE_HANDLE,
    is_arg,
    is_placeholder,
    is_retval,
    is_variable,
    is_write,
)
from simplace.placement.xla_compiler import find_clusters
from simplace.program.known_names import Path, strip_number
from simplace.views.figures.drawn_graph import DrawnGraph

PartKind = Literal["input", "variables", "initializers", "layer", "loss", "gradients", "update", "ops", "result"]
# The order in which the parts of a step run.
KINDS: tuple[PartKind, ...] = (
    "variables", "input", "initializers", "layer", "ops", "loss", "gradients", "update", "result",
)  # fmt: skip
_GRADIENTS = re.compile(r"gradient_tape|gradients(_\d+)?$")
_LOSS = re.compile(r"loss|cross_?entropy", re.IGNORECASE)
_MOST = 0.5  # of the nodes with scopes: a scope with more of them is opened
_INPUT = re.compile(r"PlaceholderWithDefault|Iterator|.*Dataset|OneShotIterator|MultiDeviceIterator")


class StepPart(NamedTuple):
    """Name a part of a step: its kind, and which of its kind it is."""

    kind: PartKind
    name: str = ""


def find_parts(graph: DrawnGraph) -> dict[int, StepPart]:
    """Return the part of each keeper."""
    return _Parts(graph).parts


class _Parts:
    def __init__(self, graph: DrawnGraph) -> None:
        self.graph = graph
        self.ops = graph.placement.graph.ops
        self.order = _sort_keepers(graph)
        self.parts: dict[int, StepPart] = {}
        self._tell_ends()
        self._tell_writes()
        self._tell_forward()
        self._tell_variables()

    def _give(self, nodes: Iterable[int], part: StepPart) -> None:
        for node in nodes:
            self.parts.setdefault(node, part)

    def _tell_ends(self) -> None:
        """Assign inputs, results, and the ops whose names show that they are gradients."""
        compiled = {cluster.node: len(cluster.ops) for cluster in find_clusters(self.graph.placement)}
        for node in self.order:
            op = self.ops[node]
            if node in compiled:
                self.parts[node] = StepPart("layer", f"XLA: {compiled[node]:,} op{'s' * (compiled[node] != 1)}")
            elif is_retval(op):
                self.parts[node] = StepPart("result")
            elif "Summary" in op:
                self.parts[node] = StepPart("result", "summaries")
            elif op == "VarIsInitializedOp":
                self.parts[node] = StepPart("initializers")
            elif is_placeholder(op) or _INPUT.match(op) or (is_arg(op) and not self._is_variable(node)):
                self.parts[node] = StepPart("input")
            elif self._is_variable(node):
                self.parts[node] = StepPart("variables")
            elif any(_GRADIENTS.match(scope) for scope in self.graph.paths[node]):
                self.parts[node] = StepPart("gradients")

    def _is_variable(self, node: int) -> bool:
        op = self.ops[node]
        if op == VARIABLE_HANDLE or is_variable(op):
            return True
        placement = self.graph.placement
        if not is_arg(op) or placement.graph.out_types[node][0] != DataType.DT_RESOURCE:
            return False
        known = placement.program.resources.get(placement.graph.attrs[node].get("index", -1))
        if known is not None:
            return known.is_variable
        return not any(_INPUT.match(self.ops[reader]) for reader in self.graph.after[node])

    def _tell_writes(self) -> None:
        """Assign the ops that write variables: their first values, the update by gradients, and anything else."""
        fed = self._reached([node for node, part in self.parts.items() if part.kind in ("input", "variables")], True)
        gradients = [node for node, part in self.parts.items() if part.kind == "gradients"]
        learns = self._reached(gradients, False)
        self._give(learns & self._reached_back(gradients), StepPart("gradients"))  # such as their sums
        writes = [node for node in self.order if is_write(self.ops[node]) and node not in self.parts]
        first = [node for node in writes if self.ops[node] in ASSIGNMENTS and node not in fed]
        updates = [node for node in writes if node in learns and node not in first]
        name = self._name_update(updates)
        own = {self.graph.paths[node][0] for node in updates if len(self.graph.paths[node]) > 1}
        rest = [node for node in writes if node not in {*first, *updates}]
        self._give(first, StepPart("initializers"))
        self._give(updates, StepPart("update", name))
        for node in rest:
            variable = self._name_written(node)
            if len(self.graph.paths[node]) > 1 and self.graph.paths[node][0] in own:
                continue
            of_optimizer = variable[:1] and strip_number(variable[0]) in map(strip_number, own)
            self._give([node], StepPart("update", name if of_optimizer else "/".join(variable[:1])))
        self._give((node for node in self.order if self.graph.paths[node][0] in own), StepPart("update", name))
        self._give((node for node in learns if self._is_learnt(node, updates)), StepPart("update", name))
        self._absorb()

    def _is_learnt(self, node: int, updates: list[int]) -> bool:
        return bool(updates) and not is_retval(self.ops[node]) and len(self.graph.paths[node]) == 1

    def _name_update(self, updates: list[int]) -> str:
        scopes = {strip_number(self.graph.paths[node][0]) for node in updates if len(self.graph.paths[node]) > 1}
        return scopes.pop() if len(scopes) == 1 else ""

    def _name_written(self, node: int) -> Path:
        for variable in self.graph.before[node]:
            if self.parts.get(variable, StepPart("ops")).kind == "variables":
                return self._name_variable(variable)
        return ()

    def _name_variable(self, node: int) -> Path:
        known = self.graph.placement.notes(node).variable
        return tuple(part for part in known.split("/") if part) if known else self.graph.paths[node]

    def _absorb(self) -> None:
        """Add what only one part reads to that part: slices of a learning rate, zeros that a gradient starts from."""
        lines = {self._line(node) for node, part in self.parts.items() if part.kind == "gradients"}
        for node in reversed(self.order):
            readers = self.graph.after[node]
            if node in self.parts or not readers or (len(self.graph.paths[node]) > 1 and not self._is_initial(readers)):
                continue
            found = {self.parts.get(reader, StepPart("ops")) for reader in readers}
            if len(found) != 1:
                continue
            (part,) = found
            if part.kind in ("update", "initializers") or (part.kind == "gradients" and self._line(node) in lines):
                self.parts[node] = part

    def _is_initial(self, readers: list[int]) -> bool:
        return all(self.parts.get(reader, StepPart("ops")).kind == "initializers" for reader in readers)

    def _line(self, node: int) -> str:
        return self.graph.placement.notes(node).at

    def _tell_forward(self) -> None:
        """Assign layers, and what follows all of them: the loss, in a program that has gradients."""
        trains = any(part.kind == "gradients" for part in self.parts.values())
        if trains:
            self._tell_results()
            self._tell_starts_of_gradients()
        rest = [node for node in self.order if node not in self.parts]
        for node in rest:
            if any(_LOSS.search(scope) for scope in self.graph.paths[node]):
                self.parts[node] = StepPart("loss")
        paths = {node: self.graph.paths[node] for node in rest if node not in self.parts}
        names = _name_layers({node: path[:-1] for node, path in paths.items() if len(path) > 1})
        self._give(names, StepPart("layer"))
        self.parts |= {node: StepPart("layer", name) for node, name in names.items()}
        after, before, known = self._reached(names, False), self._reached_back(names), set(names.values())
        for node, path in reversed(paths.items()):
            if names and node in after and node in before:
                own = path[-1] if path[-1] in known else strip_number(path[-1])
                self.parts.setdefault(node, StepPart("layer", own))
            elif trains and (not names or node in after):
                self.parts.setdefault(node, StepPart("loss") if names else StepPart("layer", "forward"))
            else:
                self.parts.setdefault(node, self._name_lone(node))

    def _name_lone(self, node: int) -> StepPart:
        """Name what nothing else tells by its line; without one, what is made of variables alone by these."""
        variables = [self._name_variable(one) for one in self.graph.before[node]
                     if self.parts.get(one, StepPart("ops")).kind == "variables"]  # fmt: skip
        device = self.graph.placement.device
        near = [reader for reader in self.graph.after[node] if device(reader) == device(node)]
        readers = {self.parts[reader] for reader in near if reader in self.parts}
        if not self._line(node) and len(readers) == 1:
            return readers.pop()
        is_dead = not self._line(node) and not readers
        return StepPart("update", variables[0][0]) if is_dead and variables else StepPart("ops", self._line(node))

    def _tell_results(self) -> None:
        """Assign what only results read and what depends on no input, such as the values of metrics."""
        made = self._reached([node for node, part in self.parts.items() if part.kind == "input"], False)
        rest = {node for node in self.order if node not in self.parts}
        for node in reversed(self.order):
            readers = self.graph.after[node]
            kinds = {self.parts.get(reader, StepPart("ops")).kind for reader in readers}
            if node in rest and node not in made and kinds == {"result"}:
                self.parts[node] = StepPart("result")

    def _tell_starts_of_gradients(self) -> None:
        """Assign to the gradients the ops without a scope of lines that make gradients, and nothing with a scope."""
        lines = {self._line(node) for node, part in self.parts.items() if part.kind == "gradients"} - {""}
        lines -= {self._line(node) for node in self.order if node not in self.parts and len(self.graph.paths[node]) > 1}
        self._give((node for node in self.order if self._line(node) in lines), StepPart("gradients"))

    def _tell_variables(self) -> None:
        """Divide variables by what they are for: those of the model, of the optimizer, of anything else."""
        for node, part in self.parts.items():
            if part.kind != "variables":
                continue
            readers = [self.parts[reader] for reader in self.graph.after[node]]
            if any(reader.kind in ("layer", "loss", "gradients", "ops") for reader in readers):
                continue
            others = [reader for reader in readers if reader.kind == "update"]
            if others:
                known = self.graph.placement.notes(node).variable
                self.parts[node] = StepPart("variables", known.split("/")[0] if "/" in known else others[0].name)

    def _reached(self, starts: Iterable[int], but_handles: bool) -> set[int]:
        """Return what depends on nodes; `but_handles` ignores that an op is given the variable that it writes."""
        found = set(starts)
        for node in self.order:
            if node in found:
                continue
            inputs = self.graph.before[node]
            if but_handles and is_write(self.ops[node]):
                inputs = [one for one in inputs if self.parts.get(one, StepPart("ops")).kind != "variables"]
            if any(one in found for one in inputs):
                found.add(node)
        return found

    def _reached_back(self, ends: Iterable[int]) -> set[int]:
        found = set(ends)
        for node in reversed(self.order):
            if any(one in found for one in self.graph.after[node]):
                found.add(node)
        return found


def _name_layers(scoped: dict[int, Path]) -> dict[int, str]:
    """Return the layer of each node: its outermost scope, opened as long as one scope has most of the nodes."""
    depth = dict.fromkeys(scoped, 1)
    while scoped:
        keys = {node: path[: depth[node]] for node, path in scoped.items()}
        largest, count = Counter(keys.values()).most_common(1)[0]
        inside = [node for node, key in keys.items() if key == largest and len(scoped[node]) > len(largest)]
        if count < _MOST * len(scoped) or 2 * len(inside) < count:
            break
        depth |= {node: depth[node] + 1 for node in inside}
    return {node: path[: depth[node]][-1] for node, path in scoped.items()}


def _sort_keepers(graph: DrawnGraph) -> list[int]:
    """Return the keepers in the order in which data flow; those of a cycle come last."""
    pending = {node: len(graph.before[node]) for node in graph.keepers}
    order = [node for node, count in pending.items() if not count]
    for node in order:  # grows while it is walked
        for target in graph.after[node]:
            pending[target] -= 1
            if not pending[target]:
                order.append(target)
    done = set(order)
    return order + [node for node in graph.keepers if node not in done]
