"""Findings about copies of each step: variables far from the layer that reads them, requested trips to the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from simplace.explain.finding import Finding, Level
from simplace.explain.finding_costs import CopyCosts
from simplace.explain.findings import asks_for_cpu, count_ops, get_short_device, has_gpu_kernel, locate_nodes
from simplace.explain.gradient_findings import is_gradient
from simplace.graph.dtypes import DataType
from simplace.graph.graph import Graph
from simplace.graph.op_kinds import DATAFLOW_ONLY, is_identity, is_variable
from simplace.placement.placement import Placement

_LEAST_BYTES = 1024  # a smaller variable is a counter or a rate, and what its copy takes is not its size


@dataclass(frozen=True, slots=True)
class VariablesFar(Finding):
    """Variables of `home` are read in every step by ops that are all on `device`; `nodes` are these ops.

    `variables` are their names as far as they are known, `ops` counts the ops.
    """

    rule: ClassVar[str] = "variables-far"
    title: ClassVar[str] = "variables elsewhere"
    variables: tuple[str, ...]
    home: str
    device: str
    ops: str


@dataclass(frozen=True, slots=True)
class HostRoundTrip(Finding):
    """Ops on a path between GPU ops run on the CPU, as the program requests; GPUs may have a kernel for them."""

    rule: ClassVar[str] = "host-round-trip"
    level: ClassVar[Level] = "note"
    title: ClassVar[str] = "round trip over the CPU"
    ops: str
    device: str
    has_kernel: bool = True


def variables_far(costs: CopyCosts) -> Iterator[VariablesFar]:
    """Yield variables that only the ops of one other device read, those of one pair of devices together.

    Variables that several devices read are shared by replicas, those of another process are a parameter server's, and
    gradients have a finding of their own.
    """
    placement, copies = costs.placement, costs.copies
    copied = {copies.producers[i] for i in copies.between_devices if (copies.sizes[i] or 0) >= _LEAST_BYTES}
    found: dict[tuple[str, str], tuple[list[int], list[int]]] = {}
    for variable, reads in _list_reads(placement).items():
        home = placement.device(reads[0])
        readers = [reader for node in reads for reader in _list_readers(placement.graph, node)]
        targets = {placement.device(reader) for reader in readers} - {""}
        if len(targets) == 1 and not copied.isdisjoint(reads) and _is_move(placement, home, *targets):
            variables, nodes = found.setdefault((home, *targets), ([], []))  # type: ignore[arg-type]
            variables.append(variable)
            nodes += readers
    for (home, device), (variables, nodes) in found.items():
        yield _record_far(costs, home, device, variables, sorted(set(nodes)))


def host_round_trips(placement: Placement) -> list[HostRoundTrip]:
    """Return the ops that the program requests on a CPU and that lie on a path from a GPU to a GPU, by the user's line.

    Those that GPUs have no kernel for, which would be there without a request, too, are findings of their own. The GPUs
    are of the CPU's process (another's CPU is a parameter server's), and what the path ends in computes: results of a
    function are handed on where it was called.
    """
    graph, devices = placement.graph, placement.devices.by_name
    asked = [
        node
        for node in sorted(placement.decisions)
        if asks_for_cpu(graph, node)
        and devices[placement.device(node)].type == "CPU"
        and graph.ops[node] not in DATAFLOW_ONLY
        and not placement.notes(node).is_by_library
    ]
    after = _close(placement, asked, lambda node: (graph.edge_src[edge] for edge in graph.data_in_edges(node)))
    before = _close(placement, asked[::-1], lambda node: _list_consumers(graph, node))
    found: dict[tuple[str, bool], list[int]] = {}
    for node in asked:
        if node in after and node in before:
            found.setdefault((placement.notes(node).at, has_gpu_kernel(placement, node)), []).append(node)
    return [
        HostRoundTrip(
            *locate_nodes(placement, nodes), count_ops(placement, nodes), get_short_device(placement, nodes[0]),
            has_kernel,
        )
        for (_, has_kernel), nodes in found.items()
    ]  # fmt: skip


def _close(placement: Placement, nodes: Iterable[int], neighbours: Callable[[int], Iterable[int]]) -> set[int]:
    """Return the nodes with a neighbour on a GPU of their process, or with one that is among those found before."""
    devices, found = placement.devices.by_name, set[int]()
    for node in nodes:
        here = devices[placement.device(node)].spec
        for other in neighbours(node):
            there = devices.get(placement.device(other))
            is_gpu = there is not None and there.type == "GPU" and there.spec.same_address_space(here)
            if is_gpu or other in found:
                found.add(node)
                break
    return found


def _list_consumers(graph: Graph, node: int) -> Iterator[int]:
    """Yield the ops that compute with what a node puts out."""
    for edge in graph.out_edges[node]:
        if not graph.is_control(edge) and graph.ops[graph.edge_dst[edge]] not in DATAFLOW_ONLY:
            yield graph.edge_dst[edge]


def _is_move(placement: Placement, home: str, device: str) -> bool:
    """Return whether two devices differ, the second is no CPU, and both are of one process."""
    here, there = (placement.devices.by_name[name] for name in (home, device))
    return home != device and there.type != "CPU" and here.spec.same_address_space(there.spec)


def _list_reads(placement: Placement) -> dict[int, list[int]]:
    """Map variables (handles, or the ops that make references) to the nodes that read the whole of them, by id."""
    graph, found = placement.graph, dict[int, list[int]]()
    for node in sorted(placement.decisions):
        op = graph.ops[node]
        if op == "ReadVariableOp" or (is_identity(op) and DataType.DT_RESOURCE not in graph.out_types[node]):
            source = graph.edge_src[graph.first_inputs[node]] if node in graph.first_inputs else -1
            while source >= 0 and _hands_on(graph, source) and source in graph.first_inputs:
                source = graph.edge_src[graph.first_inputs[source]]
            if op == "ReadVariableOp" or (source >= 0 and _is_variable(graph, source)):
                found.setdefault(source, []).append(node)
    return found


def _hands_on(graph: Graph, node: int) -> bool:
    return is_identity(graph.ops[node]) or graph.ops[node] == "ReadVariableOp"


def _is_variable(graph: Graph, node: int) -> bool:
    """Return whether a node is a variable, or a handle of one (a function has it as an argument)."""
    return is_variable(graph.ops[node]) or DataType.DT_RESOURCE in graph.out_types[node]


def _list_readers(graph: Graph, node: int) -> Iterator[int]:
    """Yield the forward ops that compute with what a node reads."""
    return (reader for reader in _list_consumers(graph, node) if not is_gradient(graph, reader))


def _record_far(costs: CopyCosts, home: str, device: str, variables: list[int], nodes: list[int]) -> VariablesFar:
    placement, copies = costs.placement, costs.copies
    reads = {node for one in variables for node in _list_reads(placement)[one]}
    ends = {*nodes, *reads}  # an identity may hand the value on
    numbers = [i for i in copies.between_devices if copies.producers[i] in reads and copies.targets[i] == device]
    names = tuple(placement.notes(one).variable or placement.graph.names[one] for one in variables)
    here, there = (placement.devices.by_name[name].short for name in (home, device))
    cost = costs.sum_up(copies, (i for i in numbers if not ends.isdisjoint(copies[i].consumers)))
    return VariablesFar(*locate_nodes(placement, nodes), names, here, there, count_ops(placement, nodes), cost=cost)
