"""Find which layers of Keras should be on which GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from simplace.graph.node_def import FunctionDef, NodeDef
from simplace.program.program import Program
from simplace.suggestions.changes import LayersOverGpus
from simplace.suggestions.estimated_step import Estimate
from simplace.suggestions.evidence import Evidence
from simplace.suggestions.layer_edits import can_hold_functions, find_optimizers, write_layer_edits
from simplace.suggestions.layer_units import LayerUnit, Makers, find_joints, list_layers
from simplace.suggestions.split_search import Assignment, Unit, search_split

EstimateOf = Callable[[Mapping[str, str], Program], Estimate | None]
_UNITS = 12  # layers that follow each other are moved as one where there are more


def find_layer_splits(evidence: Evidence, estimate: EstimateOf) -> Iterator[tuple[LayersOverGpus, Estimate]]:
    """Find the best way that the search knows to spread the layers over the GPUs, with the estimate of its step.

    `estimate` judges a program with pins, None where TensorFlow would refuse it. Programs that a strategy copies to
    devices are left alone.
    """
    program = evidence.placed.placement.program
    if len(evidence.gpus) < 2 or any("distribute" in source.text for source in evidence.files):
        return
    makers = Makers.of(evidence)
    layers = [layer for layer in list_layers(evidence, makers) if can_hold_functions(layer.source)]
    if len(layers) < 2:
        return
    split = _LayerSplit(evidence, makers, layers, _join_layers(evidence, layers))
    program = _without_joints(program, find_joints(evidence, layers)) if split.optimizers else program
    known: dict[Assignment, Estimate] = {}

    def estimate_split(chosen: Assignment) -> Estimate | None:
        found = estimate(split.pin(chosen), program)
        if found is not None:
            known[chosen] = found
        return found

    room = evidence.find_room(node for unit in split.units for node in unit.nodes)
    best = search_split(split.units, len(evidence.gpus), evidence.estimate, estimate_split, room)
    if best is not None:
        yield split.write(best), known[best]


@dataclass(frozen=True)
class _LayerSplit:
    """The layers, and the groups of them, by number, that move as one."""

    evidence: Evidence
    makers: Makers
    layers: Sequence[LayerUnit]
    groups: Sequence[tuple[tuple[int, ...], Unit]]

    @property
    def units(self) -> list[Unit]:
        """List what is moved."""
        return [unit for _, unit in self.groups]

    @property
    def has_gradients(self) -> bool:
        """Return whether the step computes gradients of the layers."""
        return any(layer.gradients for layer in self.layers)

    @property
    def optimizers(self) -> bool:
        """Return whether updates of variables can be moved."""
        return any(layer.updates for layer in self.layers) and bool(find_optimizers(self.evidence))

    def place(self, chosen: Assignment) -> dict[str, str]:
        """Return the device of each layer that is to leave the first GPU, by name."""
        gpus = self.evidence.gpus
        numbered = zip(self.groups, chosen, strict=True)
        device_of = {i: gpus[gpu] for (members, _), gpu in numbered if gpu for i in members}
        return {layer.name: device_of[i] for i, layer in enumerate(self.layers) if i in device_of}

    def pin(self, chosen: Assignment) -> dict[str, str]:
        """Return the pins of an assignment."""
        device_of, names = self.place(chosen), self.evidence.placed.placement.graph.names
        updates, pins = self.optimizers, dict[str, str]()
        for layer in self.layers:
            if device := device_of.get(layer.name):
                nodes = layer.nodes if updates else layer.forward + layer.gradients
                pins |= self.evidence.pins(nodes, device) | {names[node]: device for node in layer.variables}
        return pins

    def write(self, chosen: Assignment) -> LayersOverGpus:
        """Return the change that makes an assignment."""
        device_of = self.place(chosen)
        optimizers = find_optimizers(self.evidence) if self.optimizers else []
        edits = write_layer_edits(
            self.makers, device_of, optimizers, self.evidence.gpus[0], has_gradients=self.has_gradients
        )
        source, call = self.makers.calls[next(iter(device_of))]
        at, devices = f"{source.name}:{call.lineno}", tuple(device_of.items())
        return LayersOverGpus(edits=edits, at=at, pins=self.pin(chosen), devices=devices, has_updates=bool(optimizers))


def _join_layers(evidence: Evidence, layers: Sequence[LayerUnit]) -> list[tuple[tuple[int, ...], Unit]]:
    """Group layers until there are few enough: of connected groups, the two that are the shortest become one."""
    owner = {node: i for i, layer in enumerate(layers) for node in layer.forward}
    graph = evidence.placed.placement.graph
    pairs = {
        (owner[graph.edge_src[edge]], reader)
        for node, reader in owner.items()
        for edge in graph.data_in_edges(node)
        if owner.get(graph.edge_src[edge], reader) != reader
    }
    group_of = list(range(len(layers)))
    times = [evidence.time_of(layer.nodes) for layer in layers]
    while len(members := sorted(set(group_of))) > _UNITS:
        total = {one: sum(time for time, group in zip(times, group_of, strict=True) if group == one) for one in members}
        edges = {(group_of[a], group_of[b]) for a, b in pairs if group_of[a] != group_of[b]}
        least = min((total[a] + total[b], a, b) for a, b in edges) if edges else (0, members[0], members[1])
        group_of = [least[1] if group == least[2] else group for group in group_of]
    number = {group: i for i, group in enumerate(members)}
    found = []
    for group in members:
        own = tuple(i for i, other in enumerate(group_of) if other == group)
        reads = frozenset(number[group_of[a]] for a, b in pairs if b in own and a not in own)
        nodes = tuple(node for i in own for node in layers[i].nodes)
        found.append((own, Unit(nodes, sum(times[i] for i in own), reads, evidence.size_of(nodes))))
    return found


def _without_joints(program: Program, joints: set[str]) -> Program:
    """Return a program in which what reads gradients reads them where they are made, past the nodes named."""
    library = {name: _bypass(function, joints) for name, function in program.graph.library.items()}
    return replace(program, graph=replace(program.graph, library=library, serialized=b""))


def _bypass(function: FunctionDef, joints: set[str]) -> FunctionDef:
    past = {
        f"{node.name}:output:{i}": given
        for node in function.nodes
        if node.name in joints
        for i, given in enumerate(node.inputs)
    }

    def rewire(node: NodeDef) -> NodeDef:
        return node._replace(inputs=tuple(past.get(given, given) for given in node.inputs))

    return replace(function, nodes=tuple(rewire(node) for node in function.nodes)) if past else function
